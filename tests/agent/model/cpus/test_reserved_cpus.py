"""What annotations keep for somebody."""

import json

import msgspec
import pytest

from agent.model import state
from agent.model.cpus import reserved_cpus
from api import names
from api.kubernetes import core


def a_node(allocatable="8", **annotations):
    keys = {
        "reservation": names.ANNOTATION_NODE_RESERVATION,
        "system": names.ANNOTATION_SYSTEM_QOS,
        "manager": names.ANNOTATION_CPU_MANAGER_POLICY,
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
            a_node(system={"cpuset": "7"}),
            state.Reserved(
                system_cpus=frozenset({7}), system_qos=state.SystemQos(frozenset({7}))
            ),
        ),
        (
            a_node(system={"cpuset": "7", "cpusetExclusive": False}),
            state.Reserved(system_qos=state.SystemQos(frozenset({7}), exclusive=False)),
        ),
        (
            a_node(reservation={"resources": {"cpu": "5"}, "reservedCPUs": "0-2"}),
            state.Reserved(3000, frozenset({0, 1, 2})),
        ),
        (a_node(manager={"policy": "static"}), state.Reserved(static_cpu_manager=True)),
    ],
    ids=[
        "nothing", "allocatable", "amplified", "amount", "system", "shared system", "cpus win",
        "static",
    ],
)  # fmt: skip
def test_nodes(node, expected):
    assert reserved_cpus.read(node) == expected


@pytest.mark.parametrize(
    ("node", "key"),
    [
        (a_node(reservation={"resources": {"cpu": "many"}}), names.ANNOTATION_NODE_RESERVATION),
        (a_node(reservation={"reservedCPUs": "a-b"}), names.ANNOTATION_NODE_RESERVATION),
        (a_node(reservation="{"), names.ANNOTATION_NODE_RESERVATION),
        (a_node(system={"cpuset": "7-"}), names.ANNOTATION_SYSTEM_QOS),
        (a_node(manager="[]"), names.ANNOTATION_CPU_MANAGER_POLICY),
    ],
)
def test_what_nobody_can_read_counts_as_absent_and_is_named(node, key):
    found = reserved_cpus.read(node)
    assert list(found.problems) == [f"annotation {key}"]
    assert msgspec.structs.replace(found, problems={}) == state.Reserved()


def test_an_amount_comes_to_cpus_that_belong_together():
    machine = tuple(state.Processor(cpu, cpu % 4, 0, 0) for cpu in range(8))
    node = a_node(reservation={"resources": {"cpu": "1500m"}})
    assert reserved_cpus.read(node, processors=machine).cpus == {0, 4}


def test_beside_what_a_kubelet_handed_out():
    given = (state.GivenCpus("u", frozenset({2})), state.GivenCpus("v", frozenset({3})))
    kubelet = state.KubeletCpus("static", given=given, problems={"kubelet cpus": "why"})
    found = reserved_cpus.beside(state.Reserved(500), kubelet)
    assert found == state.Reserved(
        500,
        kubelet_cpus=frozenset({2, 3}),
        static_cpu_manager=True,
        problems={"kubelet cpus": "why"},
    )
    assert reserved_cpus.beside(found, None) is found


def test_the_topology_may_say_otherwise():
    node = a_node(system={"cpuset": "7"})
    assert reserved_cpus.read(node, {}).system_cpus == frozenset()


@pytest.mark.parametrize(
    ("written", "expected"),
    [('{"cpuset": "0-1,4"}', {0, 1, 4}), ("{}", set()), ("[", set()), ('{"cpuset": "x"}', set())],
)
def test_claimed_cpus(new_pod, written, expected):
    pod = new_pod("p", "Guaranteed", **{names.ANNOTATION_RESOURCE_STATUS: written})
    assert reserved_cpus.claimed_cpus(pod)[0] == expected
