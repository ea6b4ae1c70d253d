"""Network topology: the status of the ClusterNetworkTopology shows the domains that nodes form."""
