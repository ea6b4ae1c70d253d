"""CRI proxy between kubelet and container runtime: hook servers adjust pods before they start.

`http2` relays connections frame by frame, `cri` knows the calls that are intercepted, `hooks` the
servers that are asked; `connection` joins a connection of the kubelet with one of the runtime.
"""
