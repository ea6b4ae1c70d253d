"""What decisions are made of: a picture of the node, settings, and edits. Pure."""
