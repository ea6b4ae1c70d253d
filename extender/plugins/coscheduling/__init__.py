"""Coscheduling: the members of a gang are bound together, where its plan has placed them."""
