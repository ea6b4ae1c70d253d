"""Readings of cgroups: usage, cpusets, resctrl, pressure, hardware counters."""
