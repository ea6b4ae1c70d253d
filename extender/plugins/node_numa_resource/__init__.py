"""NodeNUMAResource: cpusets of pods, and resources aligned with NUMA nodes."""
