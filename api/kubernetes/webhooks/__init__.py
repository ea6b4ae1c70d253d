"""Calls from API servers to webhooks, and the configurations that register these."""
