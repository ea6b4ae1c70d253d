"""Settings of the manager."""
