"""Linux cpus: lists and topologies."""
