"""LowNodeLoad: moves pods from nodes whose measured load is high to nodes whose load is low.

`thresholds` says what the measured load of `framework.node_load` is compared with,
`classification` says which nodes are sources and targets, `anomaly` which sources have been
overloaded for long enough, `pool_round` plans one pool, `relief` relieves one source.
"""
