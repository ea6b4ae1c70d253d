"""The story of one pod: what was read of it, and one layer for each decision about it."""
