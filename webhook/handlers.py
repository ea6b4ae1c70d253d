"""HTTP to review and back."""
