"""Benchmarks of the descheduler: what its rounds cost on large clusters."""
