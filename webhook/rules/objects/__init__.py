"""Admission rules for the custom resources of Koordinator, one module per kind. Pure."""
