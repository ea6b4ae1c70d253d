"""Readings of this host. The only code that reads /proc and cgroups."""
