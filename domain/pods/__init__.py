"""Pods: requests, QoS consistency, and the profiles that change them on admission."""
