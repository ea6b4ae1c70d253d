"""Builds the parts of one agent from its settings and feature gates."""
