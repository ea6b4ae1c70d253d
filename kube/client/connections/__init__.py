"""Connections to the API server: HTTP/1.1 as bytes, kept connections, and streams."""
