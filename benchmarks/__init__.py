"""What performance claims are made of; each module is run with `python -m benchmarks.<name>`."""
