"""Readings of page cache that was not accessed for long."""
