"""Nodes side by side: rows, columns, and figures that are recomputed when a row changes."""
