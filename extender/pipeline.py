"""Run filters and scorers in order; keep every reason."""
