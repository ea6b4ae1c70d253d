"""The client of the API server: login, connections, requests, errors."""
