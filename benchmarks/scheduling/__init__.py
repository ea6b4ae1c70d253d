"""What scheduling costs: rates, latencies, memory, stalls and the quality of placements."""
