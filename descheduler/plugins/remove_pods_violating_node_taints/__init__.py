"""RemovePodsViolatingNodeTaints: moves pods from nodes with taints that they do not tolerate."""
