"""Pods that wait for quota: scheduling gates and the condition that tells their place in line."""
