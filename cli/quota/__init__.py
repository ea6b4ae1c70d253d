"""Elastic quota for people: what a snapshot says of it, tables and simulations."""
