"""NUMA: what each zone of a node has, what pods hold of it, and how providers are aligned."""
