"""RemoveFailedPods: removes pods of the phase Failed."""
