"""One NodeSLO per node, which says what the agent is to enforce."""
