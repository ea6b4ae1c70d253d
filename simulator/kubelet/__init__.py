"""Simulated kubelets and the generated hosts that they stand for."""
