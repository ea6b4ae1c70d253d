"""Admission rules for nodes."""
