"""Composition root of the agent."""
