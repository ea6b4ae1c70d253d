"""ClusterColocationProfiles applied to pods that exist already and wait for a node."""
