"""How well GPUs are packed on the trace of a production cluster, beside published results."""
