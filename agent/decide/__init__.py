"""What the node should look like, from one NodeState. Pure."""
