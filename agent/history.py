"""Ring buffers of samples; averages and percentiles."""
