"""The HTTP server: listeners, connections, TLS, health."""
