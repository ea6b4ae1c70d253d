"""Preemption for constraints of ours: victims, nodes without some claims. Pure."""
