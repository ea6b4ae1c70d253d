"""One round after another: look, plan, move, tell."""
