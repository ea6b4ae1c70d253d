"""The verbs: get, list, watch, create, update, patch, apply, delete and subresources."""
