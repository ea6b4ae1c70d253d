"""What the agent reports: NodeMetric, topology, events, metrics, scorecards, pages."""
