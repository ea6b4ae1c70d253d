"""ClusterState: the one mutable picture of the cluster."""
