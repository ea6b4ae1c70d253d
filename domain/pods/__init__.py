"""Pods: requests, QoS consistency, profiles that change them on admission, disruption budgets."""
