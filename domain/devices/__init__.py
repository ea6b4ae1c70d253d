"""Accelerators and network adapters."""
