"""Interference: online pods that are slower than they usually are because of their neighbours."""
