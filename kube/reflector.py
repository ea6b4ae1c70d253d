"""List, watch, list again: keeps one store true."""
