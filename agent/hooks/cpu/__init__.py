"""How CPUs are shared: weights, bursts, cpusets, classes, core scheduling. Pure."""
