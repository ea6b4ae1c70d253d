"""NodeState: one immutable picture per tick."""
