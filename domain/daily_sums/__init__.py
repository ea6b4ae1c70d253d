"""What colocation gave, as sums by day and team: small whatever happens. Pure."""
