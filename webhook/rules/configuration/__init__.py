"""Admission rules for the ConfigMaps that administrators write."""
