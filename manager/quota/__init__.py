"""Elastic quota: all quotas and pods as one forest, and what follows from it."""
