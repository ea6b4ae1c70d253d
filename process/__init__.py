"""The plumbing every long-running process needs; nothing about Kubernetes."""
