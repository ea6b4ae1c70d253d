"""Informers of the extender: what is watched and how it reaches the state."""
