"""LowNodeLoad: moves pods from nodes whose measured load is high to nodes whose load is low.

`node_load` holds the measured load in columns, `thresholds` what it is compared with,
`classification` says which nodes are sources and targets, `anomaly` which sources have been
overloaded for long enough, `pool_round` plans one pool, `relief` relieves one source.
"""
