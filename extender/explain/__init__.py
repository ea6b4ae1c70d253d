"""Why a pod is unschedulable: explanations, events and debug pages."""
