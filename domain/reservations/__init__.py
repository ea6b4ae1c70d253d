"""Reservations: which pods may use them, whether a pod fits, and which one it takes. Pure."""
