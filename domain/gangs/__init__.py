"""Gangs: pods that are placed all or nothing.

Pure. `declaration` reads the settings of a gang from a pod or a PodGroup, `policy` says when a gang
may be bound, `table` holds all gangs of a cluster with their members, `status` derives the status
of a PodGroup, and `sentences` says what a gang waits for.
"""
