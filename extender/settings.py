"""Settings of the extender."""
