"""Bind is the transaction: check again, reserve, write, confirm or undo."""
