"""What a change of settings, nodes or objects would do to a cluster, on its snapshot."""
