"""The gangs of a cluster: who belongs to them, what they wait for, and whether one would fit."""
