"""What each controller wants to be true. Pure."""
