"""Stories of pods, nodes and quotas: what is known of one subject, layer by layer."""
