"""RemovePodsViolatingTopologySpreadConstraint: evens pods out between domains of the topology."""
