"""Checks of what makes kube-scheduler call the extender, and of what the extender then decides."""
