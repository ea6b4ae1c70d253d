"""What is said of a configuration map before it is stored: place, value, range and remedy."""

import json

import pytest

from domain.cluster_settings import configmap_review
from domain.cluster_settings.configmap_review import Reason

COLOCATION, THRESHOLD = "colocation-config", "resource-threshold-config"
QUALITY, SYSTEM, BURST = "resource-qos-config", "system-config", "cpu-burst-config"
GOLD = {"matchLabels": {"pool": "gold"}}


def review(data, old=None, nodes=None, *, names_required=False):
    written = {k: v if isinstance(v, str) else json.dumps(v) for k, v in data.items()}
    before = {k: v if isinstance(v, str) else json.dumps(v) for k, v in (old or {}).items()}
    question = configmap_review.Question(written, before, lambda: nodes or {}, names_required)
    return configmap_review.review(question)


@pytest.mark.parametrize(
    ("key", "value", "reason", "path", "words"),
    [
        pytest.param(
            COLOCATION,
            {"cpuReclaimThresholdPercent": -1},
            Reason.INVALID,
            "colocation-config.cpuReclaimThresholdPercent",
            ["is -1", "at least 0", "correct it"],
            id="negative-share",
        ),
        pytest.param(
            COLOCATION,
            {"nodeConfigs": [{"nodeSelector": GOLD, "resourceDiffThreshold": 1.5}]},
            Reason.INVALID,
            "colocation-config.nodeConfigs[0].resourceDiffThreshold",
            ["is 1.5", "more than 0 and at most 1"],
            id="in-an-entry",
        ),
        pytest.param(
            COLOCATION,
            {"metricMemoryCollectPolicy": "all"},
            Reason.INVALID,
            "colocation-config.metricMemoryCollectPolicy",
            ['is "all"', "usageWithPageCache"],
            id="unknown-policy",
        ),
        pytest.param(
            THRESHOLD,
            {"nodeStrategies": [{"nodeSelector": {"matchLabels": {"pool": "-"}}}]},
            Reason.INVALID,
            "resource-threshold-config.nodeStrategies[0].nodeSelector.matchLabels[pool]",
            ['Invalid value: "-"'],
            id="selector-that-no-node-matches",
        ),
        pytest.param(
            THRESHOLD,
            {"clusterStrategy": {"CPUSuppressThresholdPercent": 101}},
            Reason.INVALID,
            "resource-threshold-config.clusterStrategy.cpuSuppressThresholdPercent",
            ["is 101", "in 0..100"],
            id="above-a-percentage",
        ),
        pytest.param(
            THRESHOLD,
            {"clusterStrategy": {"memoryEvictThresholdPercent": 70}},
            Reason.INVALID,
            "resource-threshold-config.clusterStrategy.memoryEvictThresholdPercent",
            ["is 70", "without memoryEvictLowerPercent", "give both"],
            id="half-a-pair",
        ),
        pytest.param(
            THRESHOLD,
            {"clusterStrategy": {"cpuEvictThresholdPercent": 70, "cpuEvictLowerPercent": 70}},
            Reason.INVALID,
            "resource-threshold-config.clusterStrategy.cpuEvictLowerPercent",
            ["less than cpuEvictThresholdPercent 70"],
            id="pair-upside-down",
        ),
        pytest.param(
            QUALITY,
            {"clusterStrategy": {"beClass": {"memoryQOS": {"wmarkMinAdj": 51}}}},
            Reason.INVALID,
            "resource-qos-config.clusterStrategy.beClass.memoryQOS.wmarkMinAdj",
            ["is 51", "in -25..50"],
            id="class-setting",
        ),
        pytest.param(
            QUALITY,
            {"clusterStrategy": {"lsClass": {"resctrlQOS": {"catRangeEndPercent": 30}}}},
            Reason.INVALID,
            "resource-qos-config.clusterStrategy.lsClass.resctrlQOS.catRangeEndPercent",
            ["without catRangeStartPercent"],
            id="half-a-cache-range",
        ),
        pytest.param(
            SYSTEM,
            {"clusterStrategy": {"watermarkScaleFactor": 401}},
            Reason.INVALID,
            "system-config.clusterStrategy.watermarkScaleFactor",
            ["is 401", "in 1..400"],
            id="kernel-setting",
        ),
        pytest.param(
            BURST,
            {"clusterStrategy": {"policy": "always"}},
            Reason.INVALID,
            "cpu-burst-config.clusterStrategy.policy",
            ['is "always"', "cfsQuotaBurstOnly"],
            id="unknown-burst-policy",
        ),
        pytest.param(
            BURST,
            {"clusterStrategy": {"cpuBurstPercent": "10"}},
            Reason.PARSE,
            "cpu-burst-config.clusterStrategy.cpuBurstPercent",
            ['is "10"', "integer"],
            id="wrong-type",
        ),
        pytest.param(BURST, "{", Reason.PARSE, BURST, ["not JSON", "remove the key"], id="cut-off"),
        pytest.param(BURST, " ", Reason.PARSE, BURST, ["is empty"], id="blank"),
        pytest.param(BURST, "[" * 9000, Reason.PARSE, BURST, ["not JSON"], id="far-too-deep"),
        pytest.param(
            COLOCATION,
            '{"extensions":' * 70 + "{}" + "}" * 70,
            Reason.PARSE,
            COLOCATION,
            ["nested more than 64 levels deep"],
            id="too-deep",
        ),
        pytest.param(
            THRESHOLD,
            {"nodeStrategies": [{"name": "gold"}]},
            Reason.INVALID,
            "resource-threshold-config.nodeStrategies[0].nodeSelector",
            ["is missing", "matchLabels"],
            id="no-selector",
        ),
        pytest.param(
            THRESHOLD,
            {"nodeStrategies": [{"nodeSelector": {}}]},
            Reason.INVALID,
            "resource-threshold-config.nodeStrategies[0].nodeSelector",
            ["every node", "clusterStrategy"],
            id="empty-selector",
        ),
        pytest.param(
            COLOCATION,
            {"nodeConfigs": [{"nodeSelector": {"matchExpressions": [{"key": "a"}]}}]},
            Reason.INVALID,
            "colocation-config.nodeConfigs[0].nodeSelector",
            ["no label selector", "operator"],
            id="illegal-selector",
        ),
    ],
)
def test_a_fault_names_its_place_and_what_is_allowed(key, value, reason, path, words) -> None:
    data = {SYSTEM: {}, key: value} if key == QUALITY else {key: value}
    found = review(data)
    assert found is not None
    assert (found.reason, found.key) == (reason, key)
    assert found.faults[0].path == path
    assert not [word for word in words if word not in str(found.faults[0])], found.faults


def test_values_at_the_edges_are_allowed() -> None:
    classes = {"throttlingPercent": 120, "wmarkScalePermill": 1000, "wmarkMinAdj": -25}
    data = {
        COLOCATION: {"cpuReclaimThresholdPercent": 130, "resourceDiffThreshold": 1},
        THRESHOLD: {
            "clusterStrategy": {
                "memoryEvictThresholdPercent": 100,
                "memoryEvictLowerPercent": 0,
                "allocatableEvictPriorityThreshold": 7999,
            }
        },
        QUALITY: {"clusterStrategy": {"lsrClass": {"memoryQOS": classes}}},
        SYSTEM: {"clusterStrategy": {"watermarkScaleFactor": 400}},
        BURST: {"clusterStrategy": {"cpuBurstPercent": 10000, "cfsQuotaBurstPeriodSeconds": -1}},
    }
    assert review(data) is None


def test_every_fault_of_a_key_is_told_at_once() -> None:
    found = review({COLOCATION: {"degradeTimeMinutes": 0, "midUnallocatedPercent": 101}})
    assert found is not None
    assert [fault.path.rpartition(".")[2] for fault in found.faults] == [
        "degradeTimeMinutes",
        "midUnallocatedPercent",
    ]


def test_a_key_that_this_change_leaves_alone_is_not_judged() -> None:
    bad = {COLOCATION: {"degradeTimeMinutes": 0}}
    good = {BURST: {"clusterStrategy": {"policy": "auto"}}}
    assert review({**bad, **good}, old=bad) is None
    assert review({**bad, **good}, old=good) is not None
    assert review({COLOCATION: ""}, old=bad) is None


def test_quality_needs_the_bandwidth_beside_it() -> None:
    for data in ({QUALITY: {}}, {QUALITY: {}, SYSTEM: "{"}):
        found = review(data)
        assert found is not None
        assert (found.reason, found.key) == (Reason.PARSE, QUALITY)
        assert SYSTEM in str(found.faults[0])
    assert review({QUALITY: {}, SYSTEM: {}}) is None


def network(total=None, **requests):
    classes = {name: {"networkQOS": settings} for name, settings in requests.items()}
    system = {"clusterStrategy": {"totalNetworkBandwidth": total}} if total else {}
    return {QUALITY: {"clusterStrategy": classes}, SYSTEM: system}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(network(lsClass={"ingressLimit": "10%"}), "write 10", id="percent-text"),
        pytest.param(
            network(lsClass={"ingressRequest": 60}, beClass={"ingressRequest": 41}),
            "add up to 101",
            id="more-than-all",
        ),
        pytest.param(
            network(lsClass={"ingressRequest": 60}, beClass={"egressRequest": "5M"}),
            "in the same way",
            id="mixed",
        ),
        pytest.param(
            network("100M", lsClass={"egressRequest": "60M"}, lsrClass={"egressRequest": "41M"}),
            "101000000, must be at most the 100000000",
            id="more-than-the-line",
        ),
        pytest.param(network(lsClass={"ingressLimit": "fast"}), "quantity", id="no-amount"),
    ],
)
def test_network_promises_that_cannot_be_kept(data, words) -> None:
    found = review(data)
    assert found is not None
    assert words in str(found.faults[0])


@pytest.mark.parametrize("field", ["ingressRequest", "egressRequest"])
def test_each_direction_is_added_up_by_itself(field) -> None:
    found = review(network(lsClass={field: 60}, beClass={field: 41}))
    assert found is not None
    assert [fault.path for fault in found.faults] == [
        f"{QUALITY}.clusterStrategy.*.networkQOS.{field}"
    ]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(network(lsClass={"ingressRequest": 60}, beClass={"egressRequest": 41})),
        pytest.param(network(lsClass={"ingressRequest": "500M"}), id="bandwidth-unknown"),
        pytest.param(network("10G", lsClass={"ingressRequest": "500M"}), id="amount"),
        pytest.param(network(lsClass={"ingressRequest": 60}, beClass={"ingressRequest": 40})),
        pytest.param(network(systemClass={"ingressRequest": "10%"}), id="unpromised-class"),
    ],
)
def test_network_promises_that_can_be_kept(data) -> None:
    assert review(data) is None


def test_an_entry_is_held_against_the_bandwidth_of_the_same_nodes() -> None:
    entry = {"nodeSelector": GOLD, "lsClass": {"networkQOS": {"egressRequest": "50M"}}}
    other = {"nodeSelector": {"matchLabels": {"pool": "tin"}}, "totalNetworkBandwidth": "1M"}
    quality = {"nodeStrategies": [entry]}
    everywhere = {"clusterStrategy": {"totalNetworkBandwidth": "10M"}}
    assert review({QUALITY: quality, SYSTEM: everywhere}) is not None
    assert review({QUALITY: quality, SYSTEM: {"nodeStrategies": [other]}}) is None
    same = {"nodeSelector": GOLD, "totalNetworkBandwidth": "20M"}
    assert review({QUALITY: quality, SYSTEM: {"nodeStrategies": [other, same]}}) is not None


def entries(*selectors, names=("a", "b", "c")):
    pairs = zip(selectors, names, strict=False)
    return {"nodeStrategies": [{"name": n, "nodeSelector": s} for s, n in pairs]}


def test_entries_for_the_same_nodes_are_found_without_any_node() -> None:
    far = {"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["tin"]}]}
    found = review({THRESHOLD: entries(GOLD, far)})
    assert found is not None
    assert (found.reason, found.entries) == (Reason.OVERLAP, ("a", "b"))
    assert "nodeStrategies[0] (a)" in str(found.faults[0])


def test_entries_that_meet_on_a_node_are_found() -> None:
    data = {THRESHOLD: entries(GOLD, {"matchLabels": {"zone": "z"}})}
    assert review(data) is None
    found = review(data, nodes={"n1": {"pool": "gold"}, "n2": {"pool": "gold", "zone": "z"}})
    assert found is not None
    assert (found.reason, found.entries) == (Reason.NODE_CONFLICT, ("a", "b"))
    assert "node n2" in str(found.faults[0])


def test_a_selector_of_many_values_is_answered_quickly() -> None:
    values = [[f"v{n}" for n in range(count)] for count in (97, 89, 83, 79, 73)]
    expressions = [
        {"key": f"k{n}", "operator": "In", "values": chosen} for n, chosen in enumerate(values)
    ]
    assert review({THRESHOLD: entries({"matchExpressions": expressions}, GOLD)}) is None


def test_very_many_entries_are_answered_without_looking_at_every_pair() -> None:
    anywhere = {"matchExpressions": [{"key": "k", "operator": "Exists"}]}
    many = {"nodeStrategies": [{"nodeSelector": anywhere} for _ in range(400)]}
    far = {"nodeStrategies": [{"nodeSelector": {"matchLabels": {"p": f"{n}"}}} for n in range(400)]}
    # Labels that nobody can imagine from these selectors, and too many pairs to look at them all.
    assert review({THRESHOLD: many}) is None
    assert review({THRESHOLD: far}, nodes={f"n{n}": {"p": f"{n}"} for n in range(500)}) is None
    found = review({THRESHOLD: many}, nodes={"n": {"k": "v"}})
    assert found is not None
    assert len(found.entries) == 400
    assert len(str(found.faults[0])) < 2000


@pytest.mark.parametrize(
    ("names", "words"),
    [
        pytest.param(("a", "a"), 'is "a" like that of', id="twice"),
        pytest.param(("a", ""), "is missing", id="none"),
    ],
)
def test_names_are_held_against_each_other_where_they_are_required(names, words) -> None:
    data = {THRESHOLD: entries(GOLD, {"matchLabels": {"pool": "tin"}}, names=names)}
    assert review(data) is None
    found = review(data, names_required=True)
    assert found is not None
    assert words in str(found.faults[0])


def test_null_says_nothing() -> None:
    assert review({COLOCATION: "null", THRESHOLD: {"clusterStrategy": None}}) is None


def test_fields_in_any_case_and_twice_are_read_like_the_reader_of_settings_does() -> None:
    text = (
        '{"nodestrategies": [{}], "nodeStrategies": null, "NodeStrategies": [],'
        ' "CLUSTERSTRATEGY": {"CPUSuppressThresholdPercent": 1}}'
    )
    found = review({THRESHOLD: text})
    assert found is not None
    assert found.faults[0].path.endswith("nodeStrategies[0].nodeSelector")
    doubled = (
        '{"nodeStrategies": [{"nodeselector": 1, "nodeSelector": {"matchLabels": {"a": "b"}}}]}'
    )
    assert review({THRESHOLD: doubled}) is None
