"""What the admission webhooks cost."""
