"""Admission rules for elastic quotas and for the pods that are charged to them."""
