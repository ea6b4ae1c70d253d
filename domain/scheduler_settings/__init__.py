"""ConfigMap koord-scheduler-config: read, checked and resolved. Pure."""
