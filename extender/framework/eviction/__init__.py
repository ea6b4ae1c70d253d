"""Preemption for constraints of ours: victims, budgets, nodes without some claims. Pure."""
