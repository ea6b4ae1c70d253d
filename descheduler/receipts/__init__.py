"""What moves have brought: planned, measured before and after; the breaker of a profile."""
