"""What one listener grants to whom: places for connections, memory for bodies. No I/O."""
