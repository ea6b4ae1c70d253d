"""Admission rules, one per module; no rule knows another. Pure."""
