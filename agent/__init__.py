"""Node agent: observe, decide, apply, once per tick."""
