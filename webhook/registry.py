"""Path and operation to rules: one visible table."""
