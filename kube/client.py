"""The narrow async client."""
