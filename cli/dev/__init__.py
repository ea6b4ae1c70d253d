"""What `koord dev` runs: a control plane, simulated nodes and every process in one loop."""
