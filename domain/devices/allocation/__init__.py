"""Which devices of a node a pod gets: candidates, topology, scores. Pure."""
