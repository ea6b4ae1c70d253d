"""Reservations: capacity of a node that is kept for pods to come, and for no others."""
