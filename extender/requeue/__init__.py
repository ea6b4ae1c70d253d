"""Unschedulable pods, queueing hints, and waking pods up."""
