"""RemovePodsViolatingInterPodAntiAffinity: pods that run where anti-affinity forbids them."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.model import nodeinfo, podinfo
from descheduler.plugins.remove_pods_violating_inter_pod_anti_affinity import (
    remove_pods_violating_inter_pod_anti_affinity as plugin_module,
)
from tests.descheduler import builders
from tests.descheduler.plugins import driving

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"


def term(labels: Mapping[str, str] | None, key: str = HOST, **more: Any) -> dict[str, Any]:
    selector = {} if labels is None else {"labelSelector": {"matchLabels": dict(labels)}}
    return {**selector, "topologyKey": key, **more}


def repels(*terms: Any) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


NOT_WEB = repels(term({"app": "web"}))
WEB = {"labels": {"app": "web"}}


def suggested(
    cluster: Iterable[nodeinfo.Node],
    pods: Iterable[podinfo.Pod],
    written: dict[str, Any] | None = None,
    answer: driving.Answers = driving.leaves,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    **options: Any,
) -> list[protocols.Suggestion]:
    arguments = compliance.RemovePodsViolatingInterPodAntiAffinityArgs.model_validate(written or {})
    more = {} if namespaces is None else {"namespaces": namespaces}
    seen = builders.picture_of(cluster, pods, **more)
    plugin = plugin_module.RemovePodsViolatingInterPodAntiAffinity(arguments)
    return driving.run(plugin, driving.view(seen, **options), answer)


def node(name: str, **fields: Any) -> nodeinfo.Node:
    return builders.node(name, **fields)


def zoned(name: str, zone: str) -> nodeinfo.Node:
    return builders.node(name, labels={"zone": zone})


A, B = node("a"), node("b")
IN_ZONE = repels(term({"app": "web"}, "zone"))


@pytest.mark.parametrize(
    ("nodes", "repelling", "repelled", "expected"),
    [
        pytest.param([A, B], NOT_WEB, WEB, True, id="on one node"),
        pytest.param([A], NOT_WEB, WEB, False, id="one node: nowhere to go"),
        pytest.param([A, B], {}, WEB, False, id="no anti-affinity"),
        pytest.param([A, B], NOT_WEB, {}, False, id="labels do not match"),
        pytest.param([A, B], repels(term(None)), WEB, False, id="no selector selects nothing"),
        pytest.param([A, B], repels(term({})), {}, True, id="an empty one selects all"),
        pytest.param([A, B], IN_ZONE, WEB, False, id="nodes without the topology label"),
        pytest.param(
            [zoned("a", "x"), zoned("b", "x"), zoned("c", "y")], IN_ZONE, WEB, True, id="zone"
        ),
        pytest.param(
            [zoned("a", "x"), zoned("b", "x")], IN_ZONE, WEB, False, id="no other zone to go to"
        ),
        pytest.param(
            [A, B],
            {**NOT_WEB, "phase": "Succeeded"},
            WEB,
            False,
            id="the repelling pod has ended",
        ),
        pytest.param(
            [A, B], NOT_WEB, {**WEB, "leaves_at": 1.0}, False, id="the repelled pod is leaving"
        ),
        pytest.param(
            [A, B], {**NOT_WEB, "leaves_at": 1.0}, WEB, False, id="the repelling pod is leaving"
        ),
        pytest.param(
            [A, B],
            repels(term({"app": "web"}, namespaces=["other"])),
            WEB,
            False,
            id="another namespace is meant",
        ),
        pytest.param(
            [A, B],
            repels(term({"app": "web"}, namespaceSelector={"matchLabels": {"team": "one"}})),
            WEB,
            True,
            id="namespaces by labels",
        ),
        pytest.param(
            [A, B],
            repels(term({"app": "web"}, namespaceSelector={"matchLabels": {"team": "two"}})),
            WEB,
            False,
            id="other labels of namespaces",
        ),
        pytest.param(
            [A, B],
            {**repels(term({"app": "web"}, matchLabelKeys=["rev"])), "labels": {"rev": "1"}},
            {"labels": {"app": "web", "rev": "2"}},
            False,
            id="another revision",
        ),
        pytest.param(
            [A, B],
            {**repels(term({"app": "web"}, mismatchLabelKeys=["rev"])), "labels": {"rev": "1"}},
            {"labels": {"app": "web", "rev": "2"}},
            True,
            id="only other revisions",
        ),
        pytest.param(
            [A, B],
            repels(
                term({"app": "web"}, namespaces=["other"], namespaceSelector={"matchLabels": {}})
            ),
            WEB,
            True,
            id="named namespaces beside all of them",
        ),
        pytest.param(
            [A, B],
            repels(term({"app": "web"}, namespaces=["default"], namespaceSelector={})),
            WEB,
            True,
            id="named, and selected as well",
        ),
        pytest.param([A, B], repels({"labelSelector": {}}), WEB, False, id="no topology key"),
        pytest.param([A, B], repels("x"), WEB, False, id="no term at all"),
        pytest.param([A, B], {"affinity": {"podAntiAffinity": 3}}, WEB, False, id="unreadable"),
        pytest.param(
            [A, B],
            repels(
                term(None, labelSelector={"matchExpressions": [{"key": "a", "operator": "Of"}]})
            ),
            WEB,
            False,
            id="unknown operator",
        ),
    ],
)
def test_which_pods_leave(
    nodes: list[nodeinfo.Node], repelling: dict[str, Any], repelled: dict[str, Any], expected: bool
) -> None:
    where = "b" if nodes[0].labels.get("zone") else "a"
    pods = [
        builders.pod("first", "a", **repelling),
        builders.pod("second", where, **repelled),
    ]
    found = suggested(nodes, pods, namespaces={"default": {"team": "one"}})
    assert driving.names(found) == ["second"] * expected


def test_of_two_that_repel_each_other_the_less_important_leaves() -> None:
    pods = [
        builders.pod("plain", "a", **WEB, **NOT_WEB, priority=1),
        builders.pod("important", "a", **WEB, **NOT_WEB, priority=9),
    ]
    (found,) = suggested([A, B], pods)
    assert found.pod.name == "plain"
    assert found.targets == ("b",)
    assert found.reason == "anti-affinity of pod default/important forbids it here"
    assert found.purpose is protocols.Purpose.COMPLY
    refused = suggested([A, B], pods, answer=driving.stays)
    assert driving.names(refused) == ["plain", "important"]


def test_targets_satisfy_the_pods_own_anti_affinity_too() -> None:
    pods = [
        builders.pod("repelling", "a", **NOT_WEB),
        builders.pod("web", "a", **WEB, **repels(term({"app": "db"}))),
        builders.pod("db", "b", labels={"app": "db"}),
    ]
    assert suggested([A, B], pods) == []
    assert [one.targets for one in suggested([A, B, node("c")], pods)] == [("c",)]


def test_a_place_that_one_pod_goes_to_is_no_target_of_the_next() -> None:
    pods = [builders.pod(f"web{at}", "a", **WEB, **NOT_WEB) for at in range(3)]
    found = suggested([A, B], pods)
    assert driving.names(found) == ["web0"]
    both = suggested([A, B, node("c")], pods)
    assert [one.targets for one in both] == [("b", "c"), ("c",)]
    assert len(suggested([A, B], pods, answer=lambda _: True)) == 2


def test_protected_and_uncovered_pods_stay() -> None:
    pods = [
        builders.pod("repelling", "a", **NOT_WEB),
        builders.pod("kept", "a", **WEB),
        builders.pod("late", "a", **WEB),
        builders.pod("other", "a", labels={"app": "web", "skip": "yes"}),
        builders.pod("web", "a", **WEB),
    ]
    selector = {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]}
    found = suggested([A, B], pods, {"labelSelector": selector}, kept={"kept"}, kept_late={"late"})
    assert driving.names(found) == ["web"]
    assert suggested([A, B], pods, {"namespaces": {"include": ["none"]}}) == []
    assert suggested([A, B], pods, nodes=["b"]) == []


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from("xyz"), st.sampled_from(["", "x", "y", "z"])),
        max_size=8,
    )
)
def test_no_move_makes_another_violation(drawn: list[tuple[int, str, str]]) -> None:
    nodes = [node(f"n{at}") for at in range(4)]
    pods = [
        builders.pod(
            f"p{at}",
            f"n{on}",
            labels={"app": own},
            **(repels(term({"app": against})) if against else {}),
        )
        for at, (on, own, against) in enumerate(drawn)
    ]
    against = {f"uid-p{at}": one[2] for at, one in enumerate(drawn)}
    seen = builders.picture_of(nodes, pods)
    moved: dict[str, str] = {}
    violations = [_violations(driving.after(seen, moved), against)]

    def answer(one: protocols.Suggestion) -> protocols.Answer:
        moved[one.pod.uid] = max(one.targets or ())
        violations.append(_violations(driving.after(seen, moved), against))
        return protocols.Target(moved[one.pod.uid])

    suggested(nodes, pods, answer=answer)
    assert violations == sorted(violations, reverse=True)
    assert len(set(violations)) == len(violations)


def _violations(there: Mapping[str, list[podinfo.Pod]], against: Mapping[str, str]) -> int:
    return sum(
        against[one.uid] == other.labels["app"]
        for pods in there.values()
        for one in pods
        for other in pods
        if one.uid != other.uid
    )
