"""Elastic quotas made by profiles: one per group of nodes."""
