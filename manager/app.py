"""Composition root of the manager."""
