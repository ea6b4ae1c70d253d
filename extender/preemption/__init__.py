"""Preemption for what kube-scheduler does not count: plan, claim, evict, requeue."""
