"""Composition root of the descheduler."""
