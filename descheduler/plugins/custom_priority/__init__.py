"""CustomPriority: moves pods to groups of nodes that come later in an order."""
