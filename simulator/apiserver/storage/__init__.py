"""The versioned object store and what a write makes of metadata."""
