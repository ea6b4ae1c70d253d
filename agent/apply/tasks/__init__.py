"""Processes and threads by their numbers: who is in a cgroup, and what the kernel does to them."""
