"""What is measured and learned: NodeMetric, how it is filled, Recommendation."""
