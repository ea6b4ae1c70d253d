"""A real control plane out of binaries, as child processes."""
