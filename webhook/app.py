"""Composition root of the webhook."""
