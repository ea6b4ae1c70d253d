"""Where the scheduler would place pods: its own decision code on a fork of its state."""
