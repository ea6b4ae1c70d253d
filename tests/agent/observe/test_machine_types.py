"""Machines of several types, from generated files to the NodeResourceTopology of their node.

What is expected is worked out from the description of the machine, not from what the agent read.
"""

import json

import msgspec
import pytest

from agent.model.cpus import kubelet_cpu_manager
from agent.observe import observation
from agent.report import node_resource_topology
from api import names
from api.kubernetes import core
from domain.cpus import cpulists
from simulator.kubelet import machines, nodefs

MIB = 1 << 20
SOCKET = machines.Machine(machines.grid(1, 1, 16), node_mib=4096)
TWO_SOCKETS = machines.Machine(machines.grid(2, 1, 10, 2), turbo=True, node_mib=2048)
SUB_NUMA = machines.Machine(machines.grid(2, 2, 6, 2, adjacent=True), node_mib=1024)
MANY_CACHES = machines.Machine(
    machines.grid(1, 4, 8, 2, cores_per_cache=4), model="AMD EPYC 9654", vendor="AuthenticAMD"
)
# The middle two zones of the numbering have memory only, and some cpus are switched off.
ARM = machines.Machine(
    tuple(machines.Place(core=n, node=0 if n < 8 else 3) for n in range(16)),
    model="",
    offline=frozenset({0, 3, 4, 9, 15}),
    memory_only=frozenset({1, 2}),
    caches=False,
    siblings=False,
)
EXPANDED = machines.Machine(
    machines.grid(2, 1, 4, 2),
    memory_only=frozenset({2, 5}),
    initiators=frozenset({4}),
    huge={0: {2048: 64}, 1: {1048576: 1}},
    node_mib=8192,
)
MACHINES = {
    "single socket without SMT": SOCKET,
    "two sockets with SMT": TWO_SOCKETS,
    "sub-NUMA clusters": SUB_NUMA,
    "many last-level caches": MANY_CACHES,
    "ARM with cpus switched off": ARM,
    "zones without cpus": EXPANDED,
}


class Look:
    """One look of an agent at a machine, whose kubelet has the static policy."""

    def __init__(self, folder, machine):
        self.machine = machine
        self.online = machines.online(machine)
        self.reserved, self.given, self.bound = (frozenset({c}) for c in self.online[:3])
        memory = machine.node_mib * MIB * len(machines.memory_nodes(machine))
        tree = nodefs.HostTree(folder, len(self.online), memory)
        tree.build(machine)
        roots = observation.Roots(str(tree.proc), str(tree.sys), str(tree.cgroup), huge_pages=True)
        self.observer = observation.Observer(roots, 1.0)
        static = kubelet_cpu_manager.Configuration(
            "static",
            {"full-pcpus-only": "true"},
            reserved=cpulists.text(self.reserved),
            topology="SingleNUMANodePodLevel",
        )
        claim = {names.ANNOTATION_RESOURCE_STATUS: json.dumps({"cpuset": str(min(self.bound))})}
        pods = (a_pod("own"), a_pod("bound", **claim))
        known = observation.Known(
            node=a_node(len(self.online)),
            pods=pods,
            kubelet=kubelet_cpu_manager.Told(static, {"own": self.given}),
        )
        self.picture = self.observer.observe(known, observation.Moment(1.7e9, 1.0))
        self.told = node_resource_topology.merged(node_resource_topology.report(self.picture), None)

    def note(self, key):
        return json.loads(self.told["metadata"]["annotations"][key])


def a_node(cpus):
    amounts = {"cpu": str(cpus), "memory": "64Gi"}
    raw = {
        "metadata": {"name": "node-1", "uid": "u"},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
    return msgspec.convert(raw, core.Node)


def a_pod(uid, **annotations):
    amounts = {"cpu": "2", "memory": "1Gi"}
    raw = {
        "metadata": {
            "name": uid,
            "namespace": "default",
            "uid": uid,
            "labels": {names.LABEL_QOS: "LSR"},
            "annotations": annotations,
        },
        "spec": {
            "containers": [{"name": "app", "resources": {"requests": amounts, "limits": amounts}}]
        },
        "status": {"phase": "Running", "qosClass": "Guaranteed"},
    }
    return msgspec.convert(raw, core.Pod)


@pytest.fixture(scope="module", params=MACHINES, ids=str)
def look(request, tmp_path_factory):
    made = Look(tmp_path_factory.mktemp("host"), MACHINES[request.param])
    yield made
    made.observer.close()


def grouped(pairs):
    """Return who is together, whatever the group is called."""
    found = {}
    for member, group in pairs:
        found.setdefault(group, set()).add(member)
    return sorted(map(sorted, found.values()))


def test_a_machine_is_told_as_it_is_built(look):
    there = {cpu: look.machine.places[cpu] for cpu in look.online}
    detail = look.note(names.ANNOTATION_CPU_TOPOLOGY)["detail"]
    assert [one["id"] for one in detail] == look.online
    assert {one["id"]: (one["socket"], one["node"]) for one in detail} == {
        cpu: (place.socket, place.node) for cpu, place in there.items()
    }
    # Vendors count cores anew in every socket; the choice of cpus needs to tell them apart.
    assert grouped((one["id"], one["core"]) for one in detail) == grouped(
        (cpu, (place.socket, place.core)) for cpu, place in there.items()
    )
    caches = grouped((one.cpu, one.caches[-1]) for one in look.picture.processors if one.caches)
    expected = grouped((cpu, place.cache) for cpu, place in there.items())
    assert caches == (expected if look.machine.caches else [])


def test_its_zones_go_by_their_numbers(look):
    numbers = sorted({look.machine.places[cpu].node for cpu in look.online})
    assert [zone["name"] for zone in look.told["zones"]] == [f"node-{n}" for n in numbers]
    for number, zone in zip(numbers, look.told["zones"], strict=True):
        huge = {size * count << 10 for size, count in look.machine.huge.get(number, {}).items()}
        listed = {one["name"]: one["allocatable"] for one in zone["resources"]}
        count = sum(look.machine.places[cpu].node == number for cpu in look.online)
        assert listed["cpu"] == str(count)
        assert _bytes(listed["memory"]) == look.machine.node_mib * MIB - sum(huge)
        sizes = (names.HUGE_PAGES_2M, names.HUGE_PAGES_1G)
        assert sum(_bytes(listed[name]) for name in sizes) == sum(huge)
    # Memory without cpus counts as memory of the machine, and is no zone to place a pod in.
    memory = {node.number for node in look.picture.numa}
    assert memory == {*numbers, *look.machine.memory_only}


def _bytes(text):
    units = {"Ki": 1 << 10, "Mi": MIB, "Gi": 1 << 30}
    return int(text[:-2]) * units[text[-2:]] if text[-2:] in units else int(text)


def test_what_the_static_kubelet_and_the_scheduler_gave_away_is_told(look):
    assert look.told["topologyPolicies"] == ["SingleNUMANodePodLevel"]
    assert look.note(names.ANNOTATION_CPU_MANAGER_POLICY) == {
        "policy": "static",
        "options": {"full-pcpus-only": "true"},
        "reservedCPUs": cpulists.text(look.reserved),
    }
    (given,) = look.note(names.ANNOTATION_POD_CPU_ALLOCS)
    assert (given["uid"], given["cpuset"]) == ("own", cpulists.text(look.given))
    for key, gone in (
        (names.ANNOTATION_CPU_SHARED_POOLS, look.given | look.bound),
        (names.ANNOTATION_BE_CPU_SHARED_POOLS, look.given),
    ):
        pools = look.note(key)
        shared = [cpu for pool in pools for cpu in sorted(cpulists.parse(pool["cpuset"]))]
        assert sorted(shared) == [cpu for cpu in look.online if cpu not in gone]
        for pool in pools:
            places = {look.machine.places[cpu] for cpu in cpulists.parse(pool["cpuset"])}
            assert {(place.socket, place.node) for place in places} == {
                (pool["socket"], pool["node"])
            }
