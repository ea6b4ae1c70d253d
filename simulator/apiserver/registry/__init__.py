"""Kinds: which are served, and the defaults, schemas and rules of each."""
