"""Where benchmarks run: real and generated control planes, cores, and programs in Go."""
