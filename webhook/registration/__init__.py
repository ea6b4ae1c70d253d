"""The webhook configuration objects and the serving certificate, kept in the cluster."""
