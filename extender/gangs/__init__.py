"""Gangs: planned as a whole, held as a whole, opened together, and released together."""
