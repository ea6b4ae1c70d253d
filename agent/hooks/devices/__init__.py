"""Devices that were allocated to a pod: their nodes and environment in its containers. Pure."""
