"""The arithmetic: pure calculations that more than one process needs."""
