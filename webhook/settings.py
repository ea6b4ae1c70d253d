"""Settings of the webhook."""
