"""What the agent remembers: time series, peaks, checkpoints, last known settings."""
