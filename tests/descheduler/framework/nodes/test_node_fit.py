import dataclasses

import hypothesis
import pytest
from hypothesis import strategies

from api.kubernetes import core
from descheduler.framework.nodes import node_fit
from tests.descheduler import builders

_TAINT = core.Taint(key="dedicated", value="gpu", effect="NoSchedule")
_SOFT = core.Taint(key="dedicated", value="gpu", effect="PreferNoSchedule")
_IN_A = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
            ]
        }
    }
}


def _all_ways(node, pod, residents=()):
    """Whether a node takes a pod, asked in each way."""
    table = node_fit.Table(builders.picture_of([node, builders.node("other", cpu=0)], residents))
    answers = {
        bool(table.rows(["unknown", node.name]).fitting(pod)[1]),
        bool(table.rows([node.name]).fitting(pod)[0]),
    }
    assert len(answers) == 1
    return answers.pop()


@pytest.mark.parametrize(
    ("node", "pod", "fits"),
    [
        pytest.param({}, {}, True, id="room"),
        pytest.param({"schedulable": False}, {}, False, id="cordoned"),
        pytest.param({"taints": (_TAINT,)}, {}, False, id="taint"),
        pytest.param({"taints": (_SOFT,)}, {}, True, id="a preference"),
        pytest.param(
            {"taints": (_TAINT,)},
            {"tolerations": [core.Toleration(operator="Exists")]},
            True,
            id="tolerated",
        ),
        pytest.param({"labels": {"zone": "a"}}, {"selector": {"zone": "a"}}, True, id="selector"),
        pytest.param({}, {"selector": {"zone": "a"}}, False, id="another selector"),
        pytest.param({"labels": {"zone": "a"}}, {"affinity": _IN_A}, True, id="affinity"),
        pytest.param({"labels": {"zone": "b"}}, {"affinity": _IN_A}, False, id="other affinity"),
        pytest.param({}, {"cpu": "12"}, True, id="exactly what is free"),
        pytest.param({}, {"cpu": "12001m"}, False, id="too much cpu"),
        pytest.param({}, {"requests": {"example.com/x": 1}}, False, id="not offered"),
        pytest.param({}, {"requests": {"example.com/x": 0}}, True, id="none of what is missing"),
        pytest.param({"more": {"example.com/x": 1}}, {"requests": {"example.com/x": 1}}, True,
                     id="extended resource"),
        pytest.param({"pods": 2}, {}, False, id="as many pods as it may have"),
    ],
)  # fmt: skip
def test_a_node_takes_a_pod(node, pod, fits):
    residents = [
        builders.pod("a", "n", cpu="3"),
        builders.pod("b", "n", cpu="1"),
        builders.pod("ended", "n", cpu="8", phase="Succeeded"),
    ]
    assert _all_ways(builders.node("n", **node), builders.pod("p", **pod), residents) is fits


def test_nodes_keep_the_order_in_which_they_are_asked_for():
    nodes = [builders.node(name, cpu=size) for name, size in (("a", 1), ("b", 8), ("c", 4))]
    table = node_fit.Table(builders.picture_of(nodes))
    rows = table.rows(["c", "gone", "a", "b"])
    assert rows.fitting(builders.pod("p", cpu="2")).tolist() == [True, False, False, True]
    assert rows.fitting(builders.pod("q", cpu="5")).tolist() == [False, False, False, True]


@hypothesis.given(strategies.data())
def test_all_ways_to_ask_agree(data):
    amount = strategies.integers(0, 4)
    resource = strategies.sampled_from(["cpu", "memory", "example.com/x"])
    asked = data.draw(strategies.dictionaries(resource, amount))
    node = builders.node(
        "n",
        cpu=data.draw(amount),
        memory=data.draw(amount),
        pods=data.draw(amount),
        taints=data.draw(strategies.sampled_from([(), (_TAINT,)])),
        schedulable=data.draw(strategies.booleans()),
    )
    residents = [
        builders.pod(f"r{number}", "n", cpu=data.draw(amount), memory=0)
        for number in range(data.draw(strategies.integers(0, 3)))
    ]
    pod = builders.pod("p", requests=asked)
    is_free = all(
        amount + sum(one.requests.get(key, 0) for one in residents) <= node.allocatable.get(key, 0)
        for key, amount in pod.requests.items()
        if amount
    )
    expected = node.is_schedulable and not node.taints and is_free
    assert _all_ways(node, pod, residents) == expected


def test_the_table_does_not_change_the_picture():
    seen = builders.picture_of([builders.node("n")], [builders.pod("a", "n")])
    before = dataclasses.replace(seen)
    node_fit.Table(seen).rows(["n"]).fitting(builders.pod("p"))
    assert seen == before
