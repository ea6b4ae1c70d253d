"""Reservations as claims: what each keeps, and what its owners leave of it."""
