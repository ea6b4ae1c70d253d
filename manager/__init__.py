"""Controllers: NodeMetric, NodeSLO and NodeResource, leader-elected."""
