"""DeviceShare: give pods GPUs, RDMA adapters and FPGAs, whole or shared, and record which ones."""
