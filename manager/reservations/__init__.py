"""Reservations: the stand-in pods that have them placed, their status, and their end."""
