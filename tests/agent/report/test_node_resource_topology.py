"""What a NodeResourceTopology says, and what stays of what others wrote in it."""

import json

import msgspec
import pytest

from agent.model import state
from agent.report import node_resource_topology
from api import names
from api.kubernetes import core, crds
from manager.overcommit import inventory
from simulator.apiserver.registry import schemas

GIB = 1 << 30
POOLS, BATCH_POOLS = names.ANNOTATION_CPU_SHARED_POOLS, names.ANNOTATION_BE_CPU_SHARED_POOLS
MACHINE = tuple(state.Processor(cpu, cpu // 2, cpu // 4, cpu // 4) for cpu in range(8))
EMPTY = {
    names.ANNOTATION_CPU_MANAGER_POLICY: {},
    names.ANNOTATION_POD_CPU_ALLOCS: None,
    names.ANNOTATION_NODE_RESERVATION: {},
    names.ANNOTATION_SYSTEM_QOS: None,
}


def a_node(labels=(), annotations=(), allocatable="8"):
    amounts = {"cpu": "8", "memory": "32Gi"}
    raw = {
        "metadata": {
            "name": "node-1",
            "uid": "node-uid",
            "labels": dict(labels),
            "annotations": dict(annotations),
        },
        "status": {"capacity": amounts, "allocatable": {**amounts, "cpu": allocatable}},
    }
    return msgspec.convert(raw, core.Node)


@pytest.fixture
def picture():
    return state.NodeState(
        at=0,
        node=a_node(),
        processors=MACHINE,
        numa=(
            state.NumaNode(0, 16 * GIB, {names.HUGE_PAGES_2M: GIB}),
            state.NumaNode(1, 16 * GIB),
        ),
        processor_info=state.ProcessorInfo("Fast 9000", "GenuineIntel", True, False, "7ff"),
        kubelet=state.KubeletCpus(),
        pods_known=True,
    )


def told(picture, current=None):
    return node_resource_topology.merged(node_resource_topology.report(picture), current)


def notes(found):
    return {key: json.loads(text) for key, text in found["metadata"]["annotations"].items()}


def listed(zone, side):
    return {item["name"]: item[side] for item in zone["resources"]}


def test_a_plain_node(picture):
    found = told(picture)
    assert found["kind"] == "NodeResourceTopology"
    assert found["topologyPolicies"] == ["None"]
    meta = found["metadata"]
    assert meta["name"] == "node-1"
    assert meta["labels"] == {
        "app.kubernetes.io/managed-by": "Koordinator",
        names.LABEL_CREATED_BY: "koord-agent",
    }
    assert meta["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "node-uid",
         "controller": True}
    ]  # fmt: skip
    pools = [
        {"socket": 0, "node": 0, "cpuset": "0-3"},
        {"socket": 1, "node": 1, "cpuset": "4-7"},
    ]
    said = notes(found)
    detail = said.pop(names.ANNOTATION_CPU_TOPOLOGY)["detail"]
    assert detail[5] == {"id": 5, "core": 2, "socket": 1, "node": 1}
    assert [one["id"] for one in detail] == list(range(8))
    assert said == EMPTY | {
        POOLS: pools,
        BATCH_POOLS: pools,
        names.ANNOTATION_CPU_BASIC_INFO: {
            "cpuModel": "Fast 9000", "hyperThreadEnabled": True, "turboEnabled": False,
            "catL3CbmMask": "7ff", "vendorID": "GenuineIntel",
        },
    }  # fmt: skip
    zones = found["zones"]
    assert [(zone["name"], zone["type"]) for zone in zones] == [
        ("node-0", "Node"), ("node-1", "Node"),
    ]  # fmt: skip
    expected = {"cpu": "4", "hugepages-1Gi": "0", "hugepages-2Mi": "1Gi", "memory": "15Gi"}
    for side in ("capacity", "allocatable", "available"):
        assert listed(zones[0], side) == expected
        assert listed(zones[1], side) == expected | {"hugepages-2Mi": "0", "memory": "16Gi"}


@pytest.mark.parametrize(
    "missing",
    [
        {"node": None}, {"processors": ()}, {"numa": ()}, {"kubelet": None}, {"pods_known": False},
    ],
)  # fmt: skip
def test_nothing_is_told_while_a_part_is_unknown(picture, missing):
    now = msgspec.structs.replace(picture, **missing)
    assert node_resource_topology.report(now) is None
    assert node_resource_topology.unknown(now)
    assert node_resource_topology.unknown(None)
    assert node_resource_topology.unknown(picture) is None


def test_what_the_kubelet_says(picture):
    given = (
        state.GivenCpus("v", frozenset({5}), "default", "w"),
        state.GivenCpus("u", frozenset({2, 3}), "default", "v"),
    )
    kubelet = state.KubeletCpus(
        "static", {"full-pcpus-only": "true"}, frozenset({0, 1}), "RestrictedPodLevel", given
    )
    found = told(msgspec.structs.replace(picture, kubelet=kubelet))
    assert found["topologyPolicies"] == ["RestrictedPodLevel"]
    said = notes(found)
    assert said[names.ANNOTATION_CPU_MANAGER_POLICY] == {
        "policy": "static", "options": {"full-pcpus-only": "true"}, "reservedCPUs": "0-1",
    }  # fmt: skip
    assert [(one["uid"], one["cpuset"]) for one in said[names.ANNOTATION_POD_CPU_ALLOCS]] == [
        ("u", "2-3"), ("v", "5"),
    ]  # fmt: skip
    assert all(one["managedByKubelet"] for one in said[names.ANNOTATION_POD_CPU_ALLOCS])


def test_who_has_cpus_alone(picture, placed):
    pods = (
        placed("a", quality="LSE", cpus=frozenset({0})),
        placed("b", quality="LSR", cpus=frozenset({4, 5, 6, 7})),
    )
    written = {names.ANNOTATION_NODE_RESERVATION: '{"resources":{"cpu":"1"},"applyPolicy":"X"}'}
    kept = state.Reserved(
        cpus=frozenset({1}), system_qos=state.SystemQos(frozenset({2}), exclusive=False)
    )
    node = a_node(annotations=written)
    said = notes(told(msgspec.structs.replace(picture, pods=pods, reserved=kept, node=node)))
    assert said[POOLS] == [{"socket": 0, "node": 0, "cpuset": "2-3"}]
    assert [pool["cpuset"] for pool in said[BATCH_POOLS]] == ["2-3", "4-7"]
    assert said[names.ANNOTATION_NODE_RESERVATION] == {
        "resources": {"cpu": "1"}, "applyPolicy": "X", "reservedCPUs": "1",
    }  # fmt: skip
    assert said[names.ANNOTATION_SYSTEM_QOS] == {"cpuset": "2", "cpusetExclusive": False}


def test_a_reservation_that_nobody_can_read_is_not_passed_on(picture):
    node = a_node(annotations={names.ANNOTATION_NODE_RESERVATION: "{"})
    said = notes(told(msgspec.structs.replace(picture, node=node)))
    assert said[names.ANNOTATION_NODE_RESERVATION] == {}


@pytest.mark.parametrize(
    ("label", "allocatable", "expected"),
    [("true", "6999m", "3499m"), ("true", "9", "4"), ("true", "0", "0"), ("false", "6", "4")],
)
def test_what_the_node_reserves_comes_off_what_pods_may_use(picture, label, allocatable, expected):
    node = a_node({names.LABEL_NUMA_RESERVATION: label}, allocatable=allocatable)
    found = told(msgspec.structs.replace(picture, node=node))
    assert found["metadata"]["labels"][names.LABEL_NUMA_RESERVATION] == label
    zone = found["zones"][0]
    assert listed(zone, "capacity")["cpu"] == "4"
    assert listed(zone, "allocatable")["cpu"] == listed(zone, "available")["cpu"] == expected


def test_many_zones_stand_in_the_order_of_their_numbers(picture):
    cpus = tuple(state.Processor(cpu, cpu, 0, cpu) for cpu in range(11))
    nodes = tuple(state.NumaNode(number, GIB) for number in reversed(range(12)))
    found = told(msgspec.structs.replace(picture, processors=cpus, numa=nodes))
    # Memory alone is no place to run.
    assert [zone["name"] for zone in found["zones"]] == [f"node-{n}" for n in range(11)]


def somebody(found):
    """Write into the object as others do."""
    body = json.loads(json.dumps(found))
    body["metadata"] |= {"uid": "u", "resourceVersion": "7", "finalizers": ["theirs/f"]}
    body["metadata"]["annotations"] |= {"theirs": "x", POOLS: json.dumps(notes(found)[POOLS])}
    body["metadata"]["labels"] |= {"theirs": "y", "app.kubernetes.io/managed-by": "them"}
    lent = dict.fromkeys(("capacity", "allocatable", "available"), "3500")
    first = body["zones"][0]
    first["resources"] = [*first["resources"], {"name": names.BATCH_CPU, **lent}]
    first["resources"].sort(key=lambda item: item["name"])
    first |= {"costs": [{"name": "node-1", "value": 21}], "parent": "package-0"}
    cpu = next(item for item in first["resources"] if item["name"] == "cpu")
    cpu["capacity"] = "4000m"
    body["attributes"] = [{"name": "theirs", "value": "z"}]
    return body


def test_what_others_wrote_stays_and_nothing_else_is_a_change(picture):
    theirs = somebody(told(picture))
    assert told(picture, theirs) == theirs
    later = msgspec.structs.replace(
        picture,
        reserved=state.Reserved(cpus=frozenset({0})),
        node=a_node({names.LABEL_NUMA_RESERVATION: "true"}),
    )
    found = told(later, theirs)
    assert found != theirs
    assert found["attributes"] == theirs["attributes"]
    assert found["metadata"]["finalizers"] == ["theirs/f"]
    assert found["metadata"]["annotations"]["theirs"] == "x"
    assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "them"
    assert found["zones"][0]["costs"] == theirs["zones"][0]["costs"]
    assert listed(found["zones"][0], "capacity")[names.BATCH_CPU] == "3500"
    # The label stays once it was set.
    assert told(picture, found)["metadata"]["labels"][names.LABEL_NUMA_RESERVATION] == "true"


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: body["zones"].append({"name": "node-9", "type": "Node"}),
        lambda body: body["zones"].reverse(),
        lambda body: body["zones"][1].update(type="Package"),
        lambda body: body["zones"][1]["resources"].clear(),
        lambda body: body["zones"][1]["resources"][0].update(allocatable="1", capacity="?"),
        lambda body: body.update(topologyPolicies=["RestrictedPodLevel"]),
        lambda body: body.update(zones=None),
        lambda body: body["metadata"]["annotations"].update({POOLS: "["}),
        lambda body: body["metadata"]["annotations"].pop(BATCH_POOLS),
        lambda body: body["metadata"].pop("ownerReferences"),
        lambda body: body["metadata"]["ownerReferences"][0].update(uid="an-older-node"),
    ],
)
def test_what_others_changed_of_ours_is_put_right(picture, damage):
    whole = told(picture)
    broken = json.loads(json.dumps(whole))
    damage(broken)
    assert broken != whole
    assert told(picture, broken) == whole


def test_another_controller_of_the_object_stays_the_only_one(picture):
    other = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
    theirs = {"metadata": {"name": "node-1", "ownerReferences": [other]}}
    owners = told(picture, theirs)["metadata"]["ownerReferences"]
    assert owners[0] == other
    assert owners[1]["kind"] == "Node"
    assert not owners[1].get("controller")


def test_the_managers_reader_gets_what_was_told(picture):
    node = a_node({names.LABEL_NUMA_RESERVATION: "true"}, allocatable="6")
    found = inventory.read_topology(told(msgspec.structs.replace(picture, node=node)))
    assert found.processors.cpu_model == "Fast 9000"
    assert found.processors.hyper_thread_enabled
    assert [(zone.name, *zone.capacity) for zone in found.zones] == [
        ("node-0", 3000, 15 * GIB), ("node-1", 3000, 16 * GIB),
    ]  # fmt: skip


def test_both_versions_of_the_definition_take_it(picture):
    (definition,) = (
        one
        for one in crds.definitions()
        if one["spec"]["names"]["kind"] == node_resource_topology.RESOURCE.kind
    )
    found = told(picture)
    versions = {one["name"]: one for one in definition["spec"]["versions"]}
    assert versions.keys() == {"v1alpha1", "v1alpha2"}
    for served in versions.values():
        schema = schemas.Schema(served["schema"]["openAPIV3Schema"])
        assert schema.unknown(found) == []
        assert schema.problems(found) == []
        assert schema.pruned(found) == found
