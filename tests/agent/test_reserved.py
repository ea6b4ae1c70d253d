"""What annotations keep for somebody."""

import json

import msgspec
import pytest

from agent import reserved, state
from api import core, names


def a_node(allocatable="8", **annotations):
    keys = {
        "reservation": names.ANNOTATION_NODE_RESERVATION,
        "system": names.ANNOTATION_SYSTEM_QOS,
        "manager": reserved.CPU_MANAGER_POLICY,
    }
    raw = {
        "metadata": {
            "name": "n",
            "annotations": {
                keys[name]: text if isinstance(text, str) else json.dumps(text)
                for name, text in annotations.items()
            },
        },
        "status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": allocatable}},
    }
    return msgspec.convert(raw, core.Node)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (a_node(), state.Reserved()),
        (a_node("6500m"), state.Reserved(1500)),
        (a_node("9"), state.Reserved(0)),
        (a_node(reservation={"resources": {"cpu": "2"}}), state.Reserved(2000)),
        (
            a_node(reservation={"resources": {"cpu": "5"}, "reservedCPUs": "0-2"}),
            state.Reserved(3000, frozenset({0, 1, 2})),
        ),
        (a_node(reservation={"resources": {"cpu": "many"}}), state.Reserved()),
        (a_node(reservation={"reservedCPUs": "a-b"}), state.Reserved()),
        (a_node(reservation="{"), state.Reserved()),
        (a_node(system={"cpuset": "7"}), state.Reserved(system_cpus=frozenset({7}))),
        (a_node(system={"cpuset": "7", "cpusetExclusive": False}), state.Reserved()),
        (a_node(manager={"policy": "static"}), state.Reserved(static_cpu_manager=True)),
    ],
    ids=[
        "nothing", "allocatable", "amplified", "amount", "cpus win", "bad amount", "bad cpus",
        "bad json", "system", "shared system", "static",
    ],
)  # fmt: skip
def test_nodes(node, expected):
    assert reserved.read(node) == expected


def test_the_topology_may_say_otherwise():
    node = a_node(system={"cpuset": "7"})
    assert reserved.read(node, {}).system_cpus == frozenset()


@pytest.mark.parametrize(
    ("written", "expected"),
    [('{"cpuset": "0-1,4"}', {0, 1, 4}), ("{}", set()), ("[", set()), ('{"cpuset": "x"}', set())],
)
def test_bound_cpus(new_pod, written, expected):
    pod = new_pod("p", "Guaranteed", **{names.ANNOTATION_RESOURCE_STATUS: written})
    assert reserved.bound_cpus(pod) == expected
