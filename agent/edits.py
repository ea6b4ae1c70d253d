"""Edit and Eviction: what a decision asks the shell to do."""
