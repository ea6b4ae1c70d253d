"""What would happen if a quota were changed."""
