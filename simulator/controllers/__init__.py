"""Controllers: workloads, garbage collection, disruption budgets, service accounts."""
