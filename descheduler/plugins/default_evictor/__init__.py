"""DefaultEvictor as a filter: which pods may be evicted at all."""
