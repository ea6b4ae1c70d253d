"""Device discovery: GPUs, RDMA adapters, other accelerators, and their Device object."""
