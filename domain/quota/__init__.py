"""Elastic quota: trees of quotas."""
