"""The cluster state: nodes, claims and reports, with columns for vector arithmetic. Pure."""
