"""Admission webhook: mutate and validate on every pod create."""
