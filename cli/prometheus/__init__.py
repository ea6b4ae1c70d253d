"""Asks a Prometheus for figures; shared by reports and simulations."""
