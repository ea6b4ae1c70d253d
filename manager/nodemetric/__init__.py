"""One NodeMetric per node, which says how the agent is to measure."""
