"""QoS strategies: pure functions from NodeState and settings to edits."""
