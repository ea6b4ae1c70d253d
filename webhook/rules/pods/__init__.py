"""Admission rules for pods and their bindings."""
