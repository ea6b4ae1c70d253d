"""Versioned object store with watch fan-out; no I/O."""
