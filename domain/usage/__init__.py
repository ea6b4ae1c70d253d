"""Load of nodes and pods: histograms, estimates and thresholds."""
