"""RemovePodsViolatingNodeAffinity: moves pods whose node no longer is what they ask for."""
