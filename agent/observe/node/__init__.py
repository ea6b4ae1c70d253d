"""Readings of the whole machine: CPUs, NUMA nodes, memory, kernel features."""
