"""Rebalancing: rounds of suggestions that become migration jobs. Not built yet."""
