"""Looks at single nodes: classes of equal nodes, NUMA alignment, kept capacity. Pure."""
