"""Which nodes affinity between pods forbids: as kube-scheduler asks each pod, while pods move."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descheduler.framework.nodes import node_fit, node_room, pod_affinity
from descheduler.framework.pods import pod_terms, term_index
from tests import draws, processor_time
from tests.descheduler import builders
from tests.descheduler.plugins import driving

HOST, ZONE = "kubernetes.io/hostname", "zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODES = [builders.node(f"n{at}", labels={ZONE: f"z{at % 2}"} if at < 3 else {}) for at in range(4)]
"""The last one is in no zone."""
NAMES = ["unknown", *(node.name for node in NODES)]
NAMESPACES = {"default": {}, "team": {"of": "team"}}


def term(app: str, topology: str = HOST, **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": topology, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def refused(known: pod_affinity.PodAffinity, pod: Any) -> dict[str, set[str]]:
    return {
        reason: {NAMES[row] for row in np.flatnonzero(flags).tolist()} - {"unknown"}
        for reason, flags in known.refused(pod).items()
    }


# -- as kube-scheduler does ----------------------------------------------------------------------


def _term(labels: dict[str, str], topology: str, more: dict[str, Any]) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": topology, **more}


_TERM = st.builds(
    _term,
    st.sampled_from(({"app": "x"}, {"app": "x"}, {"app": "y"}, {"tier": "1"})),
    st.sampled_from((HOST, ZONE, "rack")),
    st.sampled_from(
        (
            {},
            {"namespaceSelector": {}},
            {"namespaceSelector": {"matchLabels": {"of": "team"}}, "namespaces": ["default"]},
        )
    ),
)
_AFFINITY = st.builds(
    lambda close, away: {**(near(*close) if close else {}), **(apart(*away) if away else {})},
    st.lists(_TERM, max_size=2),
    st.lists(_TERM, max_size=2),
)
_TEMPLATES = st.lists(
    st.tuples(
        st.sampled_from(("default", "team")),
        st.sampled_from(({"app": "x"}, {"app": "y"}, {"app": "x", "tier": "1"})),
        st.just({}) | _AFFINITY,
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=draws.at_least(80))
@given(st.data())
def test_it_is_as_asked_of_each_pod(data: st.DataObject) -> None:
    # The pods of a template share what their terms are read from.
    templates = [(space, dict(labels), found) for space, labels, found in data.draw(_TEMPLATES)]
    pods = []
    for at in range(data.draw(st.integers(1, 7))):
        namespace, labels, affinity = data.draw(st.sampled_from(templates))
        node = data.draw(st.sampled_from(("n0", "n0", "n1", "n2", "n3")))
        fields = data.draw(
            st.sampled_from(({}, {}, {}, {"phase": "Failed"}, {"leaves_at": builders.NOW + 60}))
        )
        pod = builders.pod(f"{namespace}/p{at}", node, labels=labels, **fields)
        pods.append(msgspec.structs.replace(pod, affinity=affinity))
    seen = builders.picture_of(NODES, pods, namespaces=NAMESPACES)
    there = {pod.uid: pod.node for pod in pods if not pod.has_ended}
    known = pod_affinity.PodAffinity(seen, NAMES)
    moves: list[tuple[str, str]] = []
    for uid in data.draw(st.permutations(sorted(there))):
        _agree(known, seen, there, uid)
        moves.append((uid, there[uid]))
        there[uid] = data.draw(st.sampled_from([*NAMES[1:], ""]))
        assert known.place(seen.pods[uid], there[uid]) == moves[-1][1]
        for other in there:
            _agree(known, seen, there, other)
    for uid, before in reversed(moves):
        known.place(seen.pods[uid], before)
        there[uid] = before
    for uid in there:
        _agree(known, seen, there, uid)


def _agree(known: pod_affinity.PodAffinity, seen: Any, there: dict[str, str], uid: str) -> None:
    pod = seen.pods[uid]
    found = known.refused(pod)
    others = [(seen.pods[one], node) for one, node in there.items() if one != uid and node]
    for row, name in enumerate(NAMES[1:], start=1):
        expected = set(_reasons(seen, pod, others, seen.nodes[name].labels))
        assert {reason for reason, flags in found.items() if flags[row]} == expected
    allowed = known.fitting(pod)
    rows = range(1, len(NAMES))
    assert [allowed is None or bool(allowed[row]) for row in rows] == [
        not any(flags[row] for flags in found.values()) for row in rows
    ]


def _reasons(seen: Any, pod: Any, others: Any, labels: Any) -> Any:
    """Yield why a node is refused, as in the filter of kube-scheduler's InterPodAffinity."""

    def selects(one: pod_terms.Term, of: Any) -> bool:
        covered = one.covers(of.namespace, seen.namespaces[of.namespace])
        return covered and one.selector.matches(of.labels)

    def domain(one: pod_terms.Term, node: str) -> Any:
        return seen.nodes[node].labels.get(one.topology_key)

    close = pod_terms.required_affinity(pod)
    matching = [node for of, node in others if all(selects(one, of) for one in close)]
    counted = {(one.topology_key, domain(one, node)) for one in close for node in matching}
    counted = {pair for pair in counted if pair[1]}
    is_first = not counted and all(selects(one, pod) for one in close)
    for one in close:
        here = labels.get(one.topology_key)
        if not here or not (is_first or (one.topology_key, here) in counted):
            yield pod_affinity.UNATTRACTED
    for of, node in others:
        for one in pod_terms.required_anti_affinity(pod):
            if selects(one, of) and labels.get(one.topology_key, "") == domain(one, node):
                yield pod_affinity.REPELS
        for one in pod_terms.required_anti_affinity(of):
            if selects(one, pod) and labels.get(one.topology_key, "") == domain(one, node):
                yield pod_affinity.REPELLED


# -- one by one ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param({"affinity": apart(term("db"))}, {pod_affinity.REPELS: {"n1"}}, id="repels"),
        pytest.param(
            {"labels": {"app": "noisy"}}, {pod_affinity.REPELLED: {"n1"}}, id="is repelled"
        ),
        pytest.param(
            {"affinity": near(term("db", ZONE))},
            {pod_affinity.UNATTRACTED: {"n0", "n2", "n3"}},
            id="wants to be near",
        ),
        pytest.param(
            {"affinity": near(term("web", ZONE)), "labels": {"app": "web"}},
            {pod_affinity.UNATTRACTED: {"n3"}},
            id="the first of its kind",
        ),
        pytest.param(
            {"affinity": near(term("web"), term("db")), "labels": {"app": "web"}},
            {pod_affinity.UNATTRACTED: {"n0", "n1", "n2", "n3"}},
            id="near two pods that no pod is both of",
        ),
        pytest.param(
            {"affinity": near(term("db"), term("web")), "labels": {"app": "web"}},
            {pod_affinity.UNATTRACTED: {"n0", "n1", "n2", "n3"}},
            id="the same in another order",
        ),
        pytest.param({"affinity": apart(term("db", "rack"))}, {}, id="a topology of no node"),
        pytest.param(
            {"affinity": near(term("db", "rack"))},
            {pod_affinity.UNATTRACTED: {"n0", "n1", "n2", "n3"}},
            id="near in a topology of no node",
        ),
        pytest.param({"affinity": {"podAffinity": {REQUIRED: "odd"}}}, {}, id="unreadable"),
    ],
)
def test_reasons_are_those_of_kube_scheduler(
    pod: dict[str, Any], expected: dict[str, set[str]]
) -> None:
    fields = {"labels": {"app": "db"}, "affinity": apart(term("noisy"))}
    asked = builders.pod("p", "n0", **pod)
    seen = builders.picture_of(NODES, [asked, builders.pod("db", "n1", **fields)])
    assert refused(pod_affinity.PodAffinity(seen, NAMES), asked) == expected
    table = node_fit.Table(seen)
    without = set().union(*expected.values())
    flags = table.rows(NAMES).fitting(asked).tolist()
    assert {name for name, fits in zip(NAMES, flags, strict=True) if fits} == (
        set(NAMES) - without - {"unknown"}
    )
    room = node_room.Room(driving.view(seen))
    assert set(room.listed(room.takers(asked))) == set(NAMES[1:]) - without - {"n0"}


def test_room_counts_pods_where_they_move_to_and_back() -> None:
    fields = {"labels": {"app": "web"}, "affinity": apart(term("web"))}
    pods = [builders.pod(f"p{at}", f"n{at}", **fields) for at in range(2)]
    room = node_room.Room(driving.view(builders.picture_of(NODES, pods)))
    assert room.listed(room.takers(pods[0])) == ("n2", "n3")
    room.move(pods[1], "n2")
    assert room.listed(room.takers(pods[0])) == ("n1", "n3")
    room.take_back(pods[1], "n2")
    assert room.listed(room.takers(pods[0])) == ("n2", "n3")


# -- effort --------------------------------------------------------------------------------------


def test_pods_are_not_compared_where_none_has_a_required_term() -> None:
    preferred = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    pods = [builders.pod(f"p{at}", "n0", affinity=preferred) for at in range(3)]
    seen = builders.picture_of(NODES, pods)
    known = pod_affinity.PodAffinity(seen, NAMES)
    assert all(known.refused(pod) == {} for pod in pods)
    known.place(pods[0], "n1")
    assert "_alike" not in vars(term_index.of(seen))


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, id="all"),
        pytest.param({"matchLabels": {"app": "web"}}, id="by label"),
    ],
)
@pytest.mark.parametrize("kind", [near, apart], ids=["near", "apart"])
def test_thousands_of_terms_hold_nobody_up(kind: Any, selector: Any) -> None:
    pods = []
    for at in range(4000):
        own = {"key": "app", "operator": "NotIn", "values": [f"v{at}"]}
        meant = {**selector, "matchExpressions": [*selector.get("matchExpressions", ()), own]}
        wanted = {"topologyKey": HOST, "labelSelector": meant, "namespaceSelector": {}}
        labels = {"app": "web", "of": str(at)}
        pods.append(builders.pod(f"odd/p{at}", f"n{at % 4}", labels=labels, affinity=kind(wanted)))
    known = pod_affinity.PodAffinity(builders.picture_of(NODES, pods), NAMES)
    with processor_time.below(1.0):
        for pod in pods:
            known.refused(pod)


def test_affinity_of_a_namespace_that_is_too_much_to_compare_is_left_to_the_scheduler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(term_index, "_MOST_LOOKS", 50)
    monkeypatch.setattr(term_index, "_MOST_BY_POD", 0)
    pods = [
        builders.pod(
            f"odd/p{at}",
            "n0",
            labels={"of": str(at)},
            affinity=near({"topologyKey": HOST, "labelSelector": {"matchExpressions": [
                {"key": "of", "operator": "NotIn", "values": [str(at)]}
            ]}}),
        )
        for at in range(10)
    ]  # fmt: skip
    fine = builders.pod("fine", "n0", affinity=near(term("db")))
    seen = builders.picture_of(NODES, [*pods, fine])
    known = pod_affinity.PodAffinity(seen, NAMES)
    assert not any(known.refused(pod) for pod in pods)
    assert known.refused(fine)
