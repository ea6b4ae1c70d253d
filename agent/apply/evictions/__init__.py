"""Pods that leave the node: by the eviction API, or by signals where it does not answer."""
