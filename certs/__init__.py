"""TLS material: issue, store, renew."""
