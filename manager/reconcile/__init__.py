"""From plans to writes: what a controller wants done, field ownership, and the one writer."""
