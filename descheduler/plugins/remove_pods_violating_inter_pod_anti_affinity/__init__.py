"""RemovePodsViolatingInterPodAntiAffinity: moves pods that others do not want beside them."""
