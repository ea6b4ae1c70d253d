"""Reports for people: what colocation gave, and what it would give before an installation."""
