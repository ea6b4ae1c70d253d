"""Requests, bodies and Status errors as they stand on the wire."""
