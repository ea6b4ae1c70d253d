"""RemovePodsViolatingTopologySpreadConstraint: few moves that make the skew small enough."""

import collections
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.kubernetes import core
from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.model import nodeinfo, podinfo
from descheduler.plugins.remove_pods_violating_topology_spread_constraint import (
    remove_pods_violating_topology_spread_constraint as plugin_module,
)
from tests import processor_time
from tests.descheduler import builders
from tests.descheduler.plugins import driving

WEB = {"app": "web"}


def spread(key: str = "zone", skew: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
        **more,
    }


def node(name: str, zone: str, **fields: Any) -> nodeinfo.Node:
    return builders.node(name, labels={"zone": zone, **fields.pop("labels", {})}, **fields)


def pods(
    on: str, count: int, *constraints: Mapping[str, Any], name: str = "", **fields: Any
) -> list[podinfo.Pod]:
    fields = {"labels": WEB, "spread": constraints or (spread(),), **fields}
    return [builders.pod(f"{name or on}{at}", on, **fields) for at in range(count)]


def suggested(
    cluster: Iterable[nodeinfo.Node],
    of: Iterable[podinfo.Pod],
    written: dict[str, Any] | None = None,
    answer: driving.Answers = driving.leaves,
    **options: Any,
) -> list[protocols.Suggestion]:
    arguments = compliance.RemovePodsViolatingTopologySpreadConstraintArgs.model_validate(
        written or {}
    )
    seen = builders.picture_of(cluster, of)
    plugin = plugin_module.RemovePodsViolatingTopologySpreadConstraint(arguments)
    return driving.run(plugin, driving.view(seen, **options), answer)


A, B, C = node("a", "x"), node("b", "y"), node("c", "z")
SOFT = spread(whenUnsatisfiable="ScheduleAnyway")
TAINT = core.Taint("dedicated", "ml", "NoSchedule")
ON_DISK = {"selector": {"disk": "ssd"}}


@pytest.mark.parametrize(
    ("nodes", "of", "written", "expected"),
    [
        pytest.param([A, B], pods("a", 3), {}, 1, id="as few as needed"),
        pytest.param([A, B], pods("a", 2), {}, 1, id="two against none"),
        pytest.param([A, B], pods("a", 1), {}, 0, id="within the skew"),
        pytest.param([A, B], pods("a", 5, spread(skew=3)), {}, 1, id="larger skew"),
        pytest.param([A, B], [*pods("a", 9), *pods("b", 1)], {}, 4, id="nine against one"),
        pytest.param([A, B, C], [*pods("a", 6), *pods("b", 4)], {}, 3, id="three domains"),
        pytest.param([A], pods("a", 3), {}, 0, id="one node"),
        pytest.param([], pods("a", 3), {}, 0, id="no nodes"),
        pytest.param([A, node("b", "x")], pods("a", 3), {}, 0, id="one domain"),
        pytest.param([A, builders.node("b")], pods("a", 3), {}, 0, id="a node of no domain"),
        pytest.param([A, B], pods("a", 3, SOFT), {}, 0, id="soft ones left out"),
        pytest.param(
            [A, B],
            pods("a", 3, SOFT),
            {"constraints": ["DoNotSchedule", "ScheduleAnyway"]},
            1,
            id="soft ones included",
        ),
        pytest.param([A, B], pods("a", 3), {"constraints": []}, 1, id="hard ones by default"),
        pytest.param([A, B], pods("a", 3, phase="Succeeded"), {}, 0, id="ended"),
        pytest.param([A, B], pods("a", 3, leaves_at=1.0), {}, 0, id="terminating"),
        pytest.param([A, B], pods("a", 3, labels={}), {}, 0, id="pods that it does not select"),
        pytest.param([A, B], pods("a", 3, spread(labelSelector=None)), {}, 0, id="no selector"),
        pytest.param([A, B], pods("a", 3, {"maxSkew": "x"}), {}, 0, id="unreadable"),
        pytest.param([A, B], pods("a", 3, spread(skew=0)), {}, 0, id="no skew"),
        pytest.param(
            [A, B], pods("a", 3), {"namespaces": {"exclude": ["default"]}}, 0, id="namespace"
        ),
        pytest.param(
            [A, B],
            pods("a", 3),
            {"labelSelector": {"matchLabels": {"tier": "none"}}},
            0,
            id="labels of pods that may leave",
        ),
        pytest.param([A, node("b", "y", cpu="0")], pods("a", 3), {}, 0, id="no room there"),
        pytest.param(
            [A, node("b", "y", cpu="0")],
            pods("a", 3),
            {"topologyBalanceNodeFit": False},
            1,
            id="room not looked at",
        ),
        pytest.param(
            [A, node("b", "y", schedulable=False)],
            pods("a", 3),
            {"topologyBalanceNodeFit": False},
            0,
            id="cordoned",
        ),
        pytest.param(
            [node("a", "x", labels={"disk": "ssd"}), B],
            pods("a", 3, **ON_DISK),
            {},
            0,
            id="nodes that affinity excludes do not count",
        ),
        pytest.param(
            [node("a", "x", labels={"disk": "ssd"}), B],
            pods("a", 3, spread(nodeAffinityPolicy="Ignore"), **ON_DISK),
            {},
            0,
            id="they count where affinity is ignored, but take no pod",
        ),
        pytest.param(
            [A, node("b", "y", taints=(TAINT,)), C],
            [*pods("a", 2), *pods("c", 2)],
            {},
            0,
            id="tainted nodes count",
        ),
        pytest.param(
            [A, node("b", "y", taints=(TAINT,)), C],
            [*pods("a", 3, spread(nodeTaintsPolicy="Honor"))],
            {},
            1,
            id="they do not where taints are honored",
        ),
        pytest.param(
            [A, B],
            [
                *pods("a", 1, spread(matchLabelKeys=["rev"]), labels={**WEB, "rev": "1"}),
                *pods("a", 1, spread(matchLabelKeys=["rev"]), labels={**WEB, "rev": "2"}, name="o"),
            ],
            {},
            0,
            id="revisions are counted one by one",
        ),
        pytest.param(
            [A, B],
            [*pods("a", 2, name="p"), *pods("a", 1, name="other", spread=())],
            {},
            1,
            id="pods without the constraint count and stay",
        ),
    ],
)
def test_how_many_pods_leave(
    nodes: list[nodeinfo.Node], of: list[podinfo.Pod], written: dict[str, Any], expected: int
) -> None:
    assert len(suggested(nodes, of, written)) == expected


def test_pods_go_to_the_emptiest_domain_and_the_reason_gives_figures() -> None:
    found = suggested([A, B, C], [*pods("a", 4), *pods("b", 1)])
    assert [one.targets for one in found] == [("c",), ("b",)]
    assert found[0].reason == "domains of zone have 0 to 4 pods, maxSkew is 1"
    assert found[0].purpose is protocols.Purpose.COMPLY


def test_protected_pods_stay_and_refused_ones_are_followed_by_others() -> None:
    of = pods("a", 3)
    assert driving.names(suggested([A, B], of, kept={"a0"}, kept_late={"a1"})) == ["a2"]
    assert driving.names(suggested([A, B], of, answer=driving.stays)) == ["a0", "a1", "a2"]
    assert suggested([A, B], of, kept={"a0", "a1", "a2"}) == []
    assert suggested([A, B], of, nodes=["b"]) == []


def test_the_next_domain_is_relieved_where_the_fullest_has_to_keep_its_pods() -> None:
    of = [*pods("a", 4), *pods("b", 3)]
    kept = {one.name for one in of if one.node == "a"}
    found = suggested([A, B, C], of, kept=kept)
    assert [(one.pod.node, one.targets) for one in found] == [("b", ("c",))]


def test_hard_constraints_skip_targets_that_the_scheduler_would_refuse() -> None:
    """Zone y may not get a pod while zone z, which takes none, has none."""
    full = node("c", "z", cpu="0")
    of = [*pods("a", 3), *pods("b", 1)]
    assert suggested([A, B, full], of) == []
    soft = [*pods("a", 3, SOFT), *pods("b", 1, SOFT)]
    assert len(suggested([A, B, full], soft, {"constraints": ["ScheduleAnyway"]})) == 1


def test_a_constraint_of_others_that_counts_a_pod_is_not_made_worse() -> None:
    """The nodes of zone y have no rack: a hard constraint forbids them, a soft one does not."""
    rack = {"labels": {"rack": "1"}}
    nodes = [node("a", "x", **rack), node("b", "y")]
    of = pods("a", 4)
    other = {"labels": {"app": "other"}, "controller": "ReplicaSet/other"}
    for when, moved in (("DoNotSchedule", 0), ("ScheduleAnyway", 2)):
        by_rack = spread("rack", whenUnsatisfiable=when)
        more = pods("a", 1, by_rack, name="other", **other)
        both = {"constraints": ["DoNotSchedule", "ScheduleAnyway"]}
        assert len(suggested(nodes, [*of, *more], both)) == moved
    elsewhere = spread("rack", labelSelector={"matchLabels": {"app": "other"}})
    assert len(suggested(nodes, [*of, *pods("a", 1, elsewhere, name="other", **other)])) == 2


def test_pods_of_nodes_that_do_not_count_are_bounded_by_the_emptiest_domain() -> None:
    """The pods of node c, of no zone, are not counted between zones, but between hosts."""
    nodes = [node("a", "x"), node("b", "y"), builders.node("c")]
    both = (spread(), spread("kubernetes.io/hostname"))
    of = [*pods("c", 3, *both), *pods("a", 1, *both), *pods("b", 1, *both)]
    found = suggested(nodes, of)
    assert [(one.pod.node, one.targets) for one in found] == [("c", ("a",))]


def test_another_constraint_is_not_made_worse() -> None:
    """Between zones pods should move, but every node of the other zone has one already."""
    nodes = [node("a", "x"), node("a2", "x"), node("a3", "x"), node("b", "y")]
    both = (spread(), spread("kubernetes.io/hostname"))
    of = [one for name in ("a", "a2", "a3", "b") for one in pods(name, 1, *both)]
    assert suggested(nodes, of) == []
    assert len(suggested([*nodes, node("b2", "y")], of)) == 1


@given(
    st.lists(st.integers(0, 7), min_size=2, max_size=5),
    st.integers(1, 3),
    st.booleans(),
    st.just([True] * 40) | st.lists(st.booleans(), min_size=40, max_size=40),
)
def test_the_skew_never_grows_and_no_move_is_spare(
    counts: list[int], skew: int, by_host: bool, answers: list[bool]
) -> None:
    zones = "xyz"
    nodes = [node(f"n{at}", zones[at % 3]) for at in range(len(counts))]
    rules = [spread(skew=skew)]
    rules += [spread("kubernetes.io/hostname", skew)] if by_host else []
    of = [one for at, count in enumerate(counts) for one in pods(f"n{at}", count, *rules)]
    seen = builders.picture_of(nodes, of)
    moved: dict[str, str] = {}
    turns = iter(answers * 3)

    def answer(one: protocols.Suggestion) -> protocols.Answer:
        if not next(turns):
            return False
        moved[one.pod.uid] = max(one.targets or ())
        return protocols.Target(moved[one.pod.uid])

    before = _skews(nodes, driving.after(seen, moved))
    found = suggested(nodes, of, answer=answer)
    after = _skews(nodes, driving.after(seen, moved))
    assert after["zone"] <= max(before["zone"], skew)
    if by_host:
        assert after["host"] <= max(before["host"], skew)
    if before["zone"] <= skew and not by_host:
        assert found == []
    if all(answers) and not by_host:
        assert after["zone"] <= skew


def _skews(
    nodes: Iterable[nodeinfo.Node], there: Mapping[str, list[podinfo.Pod]]
) -> Mapping[str, int]:
    by_zone: collections.Counter[str] = collections.Counter()
    for one in nodes:
        by_zone[one.labels["zone"]] += len(there[one.name])
    sizes = [len(of) for of in there.values()]
    return {
        "zone": max(by_zone.values()) - min(by_zone.values()),
        "host": max(sizes) - min(sizes),
    }


def test_thousands_of_constraints_of_one_pod_are_not_counted_and_hold_no_round_up() -> None:
    nodes = [node(f"n{at}", str(at)) for at in range(300)]
    many = [spread(skew=1 + at) for at in range(2000)]
    web = [builders.pod(f"web{at}", f"n{at}", labels=WEB) for at in range(300)]
    hostile = pods("n0", 3, *many, name="hostile")
    with processor_time.below(0.3):
        assert suggested(nodes, [*web, *hostile]) == []


def absent(label: str) -> dict[str, Any]:
    """Node affinity to all nodes without a label."""
    one = {"key": label, "operator": "DoesNotExist"}
    required = {"nodeSelectorTerms": [{"matchExpressions": [one]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.mark.parametrize("kind", ["nodes", "skews", "selectors"])
def test_pods_with_a_constraint_of_their_own_each_stay_and_hold_no_round_up(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_module, "_MOST_LOOKS", 2000)
    nodes = [node(f"n{at}", str(at % 2)) for at in range(30)]
    hostile, other = list[podinfo.Pod](), {"key": "app", "operator": "NotIn"}
    for at in range(100):
        by_label = {"matchExpressions": [{**other, "values": [f"x{at}"]}]}
        fields, one = {
            "nodes": ({"affinity": absent(f"k{at}")}, spread()),
            "skews": ({}, spread(skew=1 + at)),
            "selectors": ({"labels": {**WEB, "x": f"{at}"}}, spread(labelSelector=by_label)),
        }[kind]
        hostile += pods("n0", 1, one, name=f"odd/p{at}-", **fields)
    assert len(suggested(nodes, pods("n0", 3))) == 1
    found = suggested(nodes, [*pods("n0", 3), *hostile])
    assert [one.pod.namespace for one in found] == ["default"]
