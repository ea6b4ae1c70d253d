"""Embedded control plane: development mode and test double. Knows no client code of ours."""
