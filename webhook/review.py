"""Review in, Decision out."""
