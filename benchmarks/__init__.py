"""What performance claims are made of; a folder for each process; `make bench` runs all of it."""
