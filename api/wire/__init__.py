"""What every document is read and written with: quantities, durations, bounded JSON."""
