"""What the node agent costs."""
