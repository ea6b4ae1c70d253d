"""The embedded API server: real HTTPS in front of a versioned object store."""
