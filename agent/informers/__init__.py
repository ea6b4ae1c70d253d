"""What the API server and the kubelet tell about this node."""
