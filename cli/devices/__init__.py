"""The devices of a cluster: who holds which, and what cannot stay as it is."""
