"""Informers: list and watch, local stores, watch health."""
