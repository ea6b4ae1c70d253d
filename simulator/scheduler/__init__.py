"""A stand-in for kube-scheduler with the extender protocol."""
