"""What a move is worth: gain per eviction, on the load as the moves of the round leave it. Pure.

Imports the framework and the model only. It finds no targets and changes no state of the cluster.
"""
