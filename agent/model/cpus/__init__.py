"""Which CPUs belong to whom: exclusive, shared, reserved, the kubelet's. Pure."""
