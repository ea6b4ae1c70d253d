"""Events that the agent posts on pods: bindings, cache shares, drift of cpusets, interference."""
