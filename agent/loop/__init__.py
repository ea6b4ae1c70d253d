"""The tick: observe, decide, apply, and what starts and ends with it."""
