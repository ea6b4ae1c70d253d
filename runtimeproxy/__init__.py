"""CRI proxy between kubelet and the container runtime. Not built yet."""
