"""The status of Devices: who holds which of them, and metrics of the same."""
