"""Where one pod would be placed in a snapshot, and which pods would leave for it."""
