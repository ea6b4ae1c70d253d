"""Preemption for gangs: pods of lower priority leave so that a whole gang finds its places."""
