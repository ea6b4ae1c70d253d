"""Publish NodeMetric."""
