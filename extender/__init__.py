"""Scheduler extender: filter, prioritize, preempt and bind for an unmodified kube-scheduler."""
