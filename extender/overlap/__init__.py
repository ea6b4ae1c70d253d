"""Allocations that two pods of one node hold at once: found on the watch, reported, and resolved.

Bindings of two extenders to different pods do not conflict on the API server. Two installations
side by side, or a write of a deposed one that arrives late, can therefore grant the same cpus
twice. The pod that was bound earlier keeps them.
"""
