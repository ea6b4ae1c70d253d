"""Elastic quota: quotas that follow groups of nodes."""
