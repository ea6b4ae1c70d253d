"""What filter needs to decide as kube-scheduler would: its profile, its caches and its totals.

`traits` projects what score plug-ins read of pods and nodes, `state` keeps it in columns beside the
cluster state, `informers` watches what only scores depend on, `profiles` reads the scheduler's
configuration, `attempts` remembers where pods were sent, `decider` chooses a node.
"""
