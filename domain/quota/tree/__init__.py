"""The tree of elastic quotas and what each of them has: sums, limits and membership of pods."""
