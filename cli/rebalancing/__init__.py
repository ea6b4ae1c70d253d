"""Which pods the descheduler would move in a live cluster, and draining a node by its jobs."""
