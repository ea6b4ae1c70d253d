"""Reconcilers: observe, plan, apply the difference."""
