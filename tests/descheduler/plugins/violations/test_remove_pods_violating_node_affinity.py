"""RemovePodsViolatingNodeAffinity: required terms that are broken, preferred ones done better."""

from typing import Any

import pytest

from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.model import nodeinfo, podinfo
from descheduler.plugins.remove_pods_violating_node_affinity import (
    remove_pods_violating_node_affinity as plugin_module,
)
from tests import processor_time
from tests.descheduler import builders
from tests.descheduler.plugins import driving

REQUIRED = plugin_module.REQUIRED
PREFERRED = plugin_module.PREFERRED


def expression(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


SSD_ONLY = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [expression("disk", "ssd")]}}}
SSD_RATHER = {"weight": 10, "preference": expression("disk", "ssd")}
ZONE_RATHER = {"weight": 3, "preference": expression("zone", "a")}


def plugin(*kinds: str, **written: Any) -> plugin_module.RemovePodsViolatingNodeAffinity:
    arguments = compliance.RemovePodsViolatingNodeAffinityArgs.model_validate(
        {"nodeAffinityType": list(kinds), **written}
    )
    return plugin_module.RemovePodsViolatingNodeAffinity(arguments)


def node(name: str, **labels: str) -> nodeinfo.Node:
    return builders.node(name, labels=labels, cpu="4")


HDD, SSD, ZONED = node("hdd", disk="hdd"), node("ssd", disk="ssd"), node("zoned", zone="a")
FULL = builders.node("full", labels={"disk": "ssd"}, cpu="0")


def found(
    kinds: tuple[str, ...],
    nodes: list[nodeinfo.Node],
    *pods: podinfo.Pod,
    **given: Any,
) -> list[protocols.Suggestion]:
    return driving.run(plugin(*kinds), driving.view(builders.picture_of(nodes, pods), **given))


@pytest.mark.parametrize(
    ("nodes", "pod", "expected"),
    [
        pytest.param([HDD, SSD], {"affinity": SSD_ONLY}, True, id="broken, another node fits"),
        pytest.param([HDD], {"affinity": SSD_ONLY}, False, id="one node"),
        pytest.param([HDD, FULL], {"affinity": SSD_ONLY}, False, id="the other node is full"),
        pytest.param([HDD, ZONED], {"affinity": SSD_ONLY}, False, id="no other node satisfies it"),
        pytest.param(
            [HDD, builders.node("c", labels={"disk": "ssd"}, schedulable=False)],
            {"affinity": SSD_ONLY},
            False,
            id="the other node is cordoned",
        ),
        pytest.param(
            [HDD, SSD],
            {"selector": {"disk": "ssd"}},
            False,
            id="a node selector alone is no affinity",
        ),
        pytest.param([HDD, SSD], {}, False, id="no affinity"),
        pytest.param(
            [HDD, SSD], {"affinity": SSD_ONLY, "phase": "Succeeded"}, False, id="has ended"
        ),
    ],
)
def test_broken_required_affinity(
    nodes: list[nodeinfo.Node], pod: dict[str, Any], expected: bool
) -> None:
    listed = found((REQUIRED,), nodes, builders.pod("p", "hdd", **pod))
    assert driving.names(listed) == ["p"] * expected


def test_satisfied_required_affinity_stays() -> None:
    assert found((REQUIRED,), [HDD, SSD], builders.pod("p", "ssd", affinity=SSD_ONLY)) == []


@pytest.mark.parametrize(
    ("on", "nodes", "expected"),
    [
        pytest.param("hdd", [HDD, SSD, ZONED], {"ssd", "zoned"}, id="all better nodes are targets"),
        pytest.param("zoned", [HDD, SSD, ZONED], {"ssd"}, id="only a higher weight is better"),
        pytest.param("ssd", [HDD, SSD, ZONED], None, id="nothing is better"),
        pytest.param("hdd", [HDD, FULL], None, id="the better node is full"),
        pytest.param("hdd", [HDD], None, id="one node"),
    ],
)
def test_preferred_affinity_moves_to_better_nodes_only(
    on: str, nodes: list[nodeinfo.Node], expected: set[str] | None
) -> None:
    pod = builders.pod("p", on, preferred_nodes=(SSD_RATHER, ZONE_RATHER))
    listed = found((PREFERRED,), nodes, pod)
    assert [set(one.targets or ()) for one in listed] == ([] if expected is None else [expected])


def test_pods_that_prefer_thousands_of_nodes_are_compared_with_all_of_them_at_once() -> None:
    nodes = [HDD, *(node(f"ssd-{at}", disk="ssd") for at in range(3000))]
    noisy = [
        builders.pod(f"noisy-{at}", f"ssd-{at}", labels={"of": str(at % 16)}) for at in range(2000)
    ]
    apart = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"of": str(at)}}}
        for at in range(16)
    ]
    affinity = {"podAntiAffinity": {REQUIRED: apart}}
    rather = {"affinity": affinity, "preferred_nodes": (SSD_RATHER,)}
    pods = [builders.pod(f"p{at}", "hdd", cpu="0", **rather) for at in range(10)]
    view = driving.view(builders.picture_of(nodes, [*pods, *noisy]))
    with processor_time.below(0.5):
        listed = driving.drive(plugin(PREFERRED).deschedule(view, protocols.NO_MEMORY))
    expected = {f"ssd-{at}" for at in range(2000, 3000)}
    assert [set(one.targets or ()) == expected for one in listed] == [True] * 10


@pytest.mark.parametrize(
    "written",
    [
        pytest.param("x", id="no mapping"),
        pytest.param({"weight": "x", "preference": {}}, id="no number"),
        pytest.param(
            {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Of"}]}},
            id="no operator",
        ),
    ],
)
def test_preferences_that_cannot_be_read_move_nothing_and_keep_no_other_pod(written: Any) -> None:
    pods = [
        builders.pod("p", "hdd", preferred_nodes=(written,)),
        builders.pod("q", "hdd", preferred_nodes=(SSD_RATHER,)),
    ]
    assert driving.names(found((PREFERRED,), [HDD, SSD], *pods)) == ["q"]


def test_both_kinds_suggest_a_pod_once_and_only_the_kinds_asked_for() -> None:
    pod = builders.pod("p", "hdd", affinity=SSD_ONLY, preferred_nodes=(SSD_RATHER,))
    nodes = [HDD, SSD]
    assert len(found((REQUIRED, PREFERRED), nodes, pod)) == 1
    rather = builders.pod("q", "hdd", preferred_nodes=(SSD_RATHER,))
    assert found((REQUIRED,), nodes, rather) == []
    only = builders.pod("r", "hdd", affinity=SSD_ONLY)
    assert found((PREFERRED,), nodes, only) == []


def test_protected_pods_stay_and_reasons_name_the_node() -> None:
    pods = [
        builders.pod("kept", "hdd", affinity=SSD_ONLY),
        builders.pod("late", "hdd", affinity=SSD_ONLY),
        builders.pod("p", "hdd", affinity=SSD_ONLY),
        builders.pod("q", "hdd", preferred_nodes=(SSD_RATHER,)),
    ]
    listed = found((REQUIRED, PREFERRED), [HDD, SSD], *pods, kept={"kept"}, kept_late={"late"})
    assert [one.reason for one in listed] == [
        "node hdd does not satisfy the required node affinity",
        "node hdd satisfies preferences of weight 0, others 10",
    ]
    assert {one.purpose for one in listed} == {protocols.Purpose.COMPLY}


def test_no_nodes() -> None:
    seen = builders.picture_of((), [builders.pod("p", "gone", affinity=SSD_ONLY)])
    assert driving.run(plugin(REQUIRED, PREFERRED), driving.view(seen)) == []
