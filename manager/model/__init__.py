"""What the manager keeps of the objects that several of its controllers watch. Pure."""
