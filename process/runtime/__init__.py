"""What a process runs on: clock, supervision, logs, metrics, garbage collection."""
