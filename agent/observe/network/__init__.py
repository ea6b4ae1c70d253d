"""Readings of network interfaces and of the traffic of pods."""
