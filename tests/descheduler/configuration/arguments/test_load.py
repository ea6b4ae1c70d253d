"""Pools of LowNodeLoad: what is missing in one is taken from the top level."""

from descheduler.configuration.arguments import load
from tests.descheduler.configuration.arguments.written_arguments import read


def test_the_top_level_is_the_first_pool():
    args = read(
        "LowNodeLoad",
        nodeSelector={"matchLabels": {"pool": "a"}},
        useDeviationThresholds=True,
        lowThresholds={"cpu": 10},
        highThresholds={"cpu": 10},
        nodePools=[
            {"name": "b", "lowThresholds": {"memory": 40}, "highThresholds": {"memory": 70}}
        ],
    )
    top, pool = args.pools()
    assert (top.name, top.use_deviation_thresholds) == (load.DEFAULT_POOL, True)
    assert top.node_selector.selects({"pool": "a"})
    assert pool.node_selector is None
    assert not pool.use_deviation_thresholds
    assert (pool.low_thresholds, pool.high_thresholds) == ({"memory": 40}, {"memory": 70})


def test_pools_inherit_maps_weights_and_condition():
    args = read(
        "LowNodeLoad",
        lowThresholds={"cpu": 10, "nvidia.com/gpu": 5},
        highThresholds={"cpu": 10, "nvidia.com/gpu": 5},
        resourceWeights={"cpu": 3, "memory": 0},
        anomalyCondition={"timeout": "2m", "consecutiveAbnormalities": 1},
        nodePools=[{"prodLowThresholds": {}}],
    )
    _, pool = args.pools()
    assert pool.low_thresholds == args.low_thresholds
    assert pool.prod_low_thresholds == {}
    assert pool.resource_weights == {"cpu": 3, "memory": 1, "nvidia.com/gpu": 1}
    condition = pool.anomaly_condition
    assert (condition.timeout, condition.consecutive_abnormalities) == (120.0, 1)
    assert condition.consecutive_normalities == 3


def test_defaults_are_those_of_the_reference():
    args = read("LowNodeLoad")
    condition = args.anomaly_condition
    assert (condition.timeout, condition.consecutive_abnormalities) == (60.0, 5)
    assert (args.node_fit, args.number_of_nodes, args.detector_cache_timeout) == (True, 0, 300.0)
    assert args.resource_weights == {"cpu": 1, "memory": 1}


def test_namespaces_and_selectors_say_which_pods_move():
    args = read(
        "LowNodeLoad",
        evictableNamespaces={"exclude": ["kube-system"]},
        podSelectors=[{"name": "x", "selector": {"matchLabels": {"app": "x"}}}, {"name": "none"}],
    )
    assert args.covers("default", {"app": "x"})
    assert not args.covers("default", {"app": "y"})
    assert not args.covers("kube-system", {"app": "x"})
    assert args.covers_node({})


def test_a_selector_says_which_nodes_are_looked_at():
    pools = {"key": "pool", "operator": "In", "values": ["a", "b"]}
    args = read("LowNodeLoad", nodeSelector={"matchExpressions": [pools]})
    assert args.covers_node({"pool": "b"})
    assert not args.covers_node({"pool": "c"})
