"""The manager: controllers of the cluster, leader-elected, one folder per capability.

In each, `controller` reconciles, `plan` decides without I/O, `term` starts its controllers while
this replica leads; `app` puts them together.
"""
