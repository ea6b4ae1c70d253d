"""Register the webhooks and keep their CA bundle true."""
