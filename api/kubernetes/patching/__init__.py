"""Patches of objects: JSON, merge and strategic merge."""
