"""Looks at the node: readings become samples, samples become a NodeState."""
