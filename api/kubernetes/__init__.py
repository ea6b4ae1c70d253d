"""Kinds, wire formats and rules of Kubernetes itself."""
