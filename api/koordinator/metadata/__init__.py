"""What Koordinator writes into labels and annotations of pods and nodes, and its QoS classes."""
