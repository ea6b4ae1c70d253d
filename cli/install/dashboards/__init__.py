"""Grafana dashboards: panels, and what each page shows."""
