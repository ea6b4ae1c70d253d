"""Many quotas and pods on a real control plane, while pods come and go."""
