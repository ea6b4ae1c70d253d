"""Pods that wait for quota: the order in which they may start."""
