"""Informers of objects that describe a node."""
