"""Snapshots of a cluster: one versioned file that simulations and reviews start from."""
