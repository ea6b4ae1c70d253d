"""Composition root of the extender."""
