"""Which pods repel which: the same as asked of each pair of pods, while pods move."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descheduler.framework.nodes import pod_affinity
from descheduler.framework.pods import pod_terms, term_index
from descheduler.plugins.remove_pods_violating_inter_pod_anti_affinity import repulsion
from tests import draws, processor_time
from tests.descheduler import builders

HOST, ZONE = "kubernetes.io/hostname", "zone"
NODES = [builders.node(f"n{at}", labels={ZONE: f"z{at % 2}"} if at < 3 else {}) for at in range(4)]
"""The last one is in no zone."""


def _affinity(against: str, topology: str, everywhere: bool) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": against}}, "topologyKey": topology}
    more = {"namespaceSelector": {}} if everywhere else {}
    # Written twice, a term says no more.
    required = [term | more] * 2
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


_TERMS = st.tuples(st.sampled_from("xxy"), st.sampled_from((HOST, ZONE)), st.booleans())
_TEMPLATES = st.lists(
    st.tuples(
        st.sampled_from(("default", "default", "team")), st.sampled_from("xxy"), st.none() | _TERMS
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=draws.at_least(60))
@given(st.data())
def test_it_is_as_asked_of_each_pair(data: st.DataObject) -> None:
    templates = [
        (namespace, {"app": app}, _affinity(*repelled) if repelled else {})
        for namespace, app, repelled in data.draw(_TEMPLATES)
    ]
    pods = []
    for at in range(data.draw(st.integers(1, 7))):
        namespace, labels, affinity = data.draw(st.sampled_from(templates))
        node = data.draw(st.sampled_from(("n0", "n0", "n0", "n1", "n2", "n3", "gone")))
        fields = data.draw(
            st.sampled_from(({}, {}, {}, {"phase": "Failed"}, {"leaves_at": builders.NOW}))
        )
        pod = builders.pod(f"{namespace}/p{at}", node, labels=labels, **fields)
        # The pods of a template share what their terms are read from.
        pods.append(msgspec.structs.replace(pod, affinity=affinity))
    seen = builders.picture_of(NODES, pods)
    there = {pod.uid: pod.node for pod in pods if pod.node != "gone" and pod.is_active}
    known = repulsion.Repulsion(seen)
    assert {pod.uid for pod in known.repelled()} == {
        uid for uid in there if _repels(seen, there, uid)
    }
    for uid in data.draw(st.permutations(sorted(there))):
        pod = seen.pods[uid]
        if data.draw(st.booleans()):
            _agree(known, seen, there, uid)
        target = data.draw(st.sampled_from([*NODES, None]))
        known.move(pod, target)
        there[uid] = target.name if target is not None else ""
        for other in there:
            _agree(known, seen, there, other)


def _agree(known: repulsion.Repulsion, seen: Any, there: dict[str, str], uid: str) -> None:
    pod = seen.pods[uid]
    for node in NODES:
        expected = _repels(seen, there, uid, node.name)
        assert bool(known.repels(pod, node)) is bool(expected)
        assert known.repels(pod, node) in (expected or {""})


def _repels(seen: Any, there: dict[str, str], uid: str, node: str = "") -> set[str]:
    """Return the pods that keep a pod away from a node."""
    pod, node = seen.pods[uid], node or there[uid]
    found = set()
    for other in (seen.pods[one] for one in there if one != uid):
        for term in pod_terms.required_anti_affinity(other):
            meant = term.covers(pod.namespace, {}) and term.selector.matches(pod.labels)
            here = seen.nodes[node].labels.get(term.topology_key) if node else None
            where = there[other.uid]
            its = seen.nodes[where].labels.get(term.topology_key) if where else None
            if meant and here and here == its:
                found.add(other.uid)
    return found


def test_a_pod_with_thousands_of_terms_repels_nothing_and_holds_no_round_up() -> None:
    term = {"topologyKey": HOST, "namespaceSelector": {}}
    terms = [
        {**term, "labelSelector": {"matchExpressions": [{"key": f"k{at}", "operator": "Exists"}]}}
        for at in range(5000)
    ]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    pods = [builders.pod(f"p{at}", "n0", labels={"k1": str(at)}) for at in range(300)]
    pods.append(builders.pod("hostile", "n0", affinity=affinity))
    with processor_time.below(0.2):
        assert list(repulsion.Repulsion(builders.picture_of(NODES, pods)).repelled()) == []


@pytest.mark.parametrize(
    ("meant", "labels"),
    [
        pytest.param({}, {}, id="in its own namespace"),
        pytest.param({"namespaceSelector": {}}, {}, id="everywhere"),
        pytest.param({}, {"app": "x"}, id="by a label that all have"),
    ],
)
def test_pods_with_a_term_of_their_own_each_repel_nothing_and_hold_no_round_up(
    meant: dict[str, Any], labels: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_index, "_MOST_LOOKS", 6000)
    monkeypatch.setattr(term_index, "_MOST_BY_POD", 32)
    hostile = []
    for at in range(100):
        own = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [f"n{at}"]}]}
        term = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels, **own}, **meant}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        fields: dict[str, Any] = {"labels": {"app": "x", "of": str(at)}, "affinity": affinity}
        hostile.append(builders.pod(f"odd/p{at}", "n0", **fields))
    by = builders.pod("by", "n0", labels={"app": "y"}, affinity=_affinity("y", HOST, False))
    others = [builders.pod(f"{at}/p", "n1", labels={"app": "y"}) for at in range(100)]
    seen = builders.picture_of(
        NODES, [*hostile, *others, by, builders.pod("p", "n0", labels=by.labels)]
    )
    known = repulsion.Repulsion(seen)
    assert {pod.name for pod in known.repelled()} == {"p"}
    affinity = pod_affinity.PodAffinity(seen, [node.name for node in NODES])
    assert affinity.refused(hostile[0]) == {}
