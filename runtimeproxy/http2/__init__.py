"""HTTP/2 and gRPC as a relay sees them: frames pass as they are, but for chosen requests. Pure."""
