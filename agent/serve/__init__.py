"""Answers to container runtimes, before a container starts, and to programs that ask for devices.

`adjusted_messages` turns adjustments into messages of NRI (pure), `write_rivals` says when another
plug-in writes the same fields (pure), `snapshots` is what a tick freezes (pure), `container_events`
answers. `pod_devices` adds devices to lists of the kubelet (pure), `pod_resources` serves them.
"""
