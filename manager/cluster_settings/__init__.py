"""The ConfigMap of the cluster: read key by key, and what of it holds on one node."""
