"""What each node lends to batch and mid pods, kept in the status of the node."""
