"""PodGroup status, the quorum of gangs after placement, and their repair."""
