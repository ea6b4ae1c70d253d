"""What pods request of their nodes, summed up for all nodes together."""

import collections

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from descheduler.framework.nodes import node_fit, node_requests
from tests import draws
from tests.descheduler import builders

NODES = ("a", "b", "c", "gone")
OFFERED = ("cpu", "memory", "gpu", "pods")


def naively(seen):
    """Add pod by pod what is requested of resources that a node offers."""
    found = collections.defaultdict(collections.Counter)
    for pod in seen.pods.values():
        if not pod.has_ended:
            asked = {key: one for key, one in pod.requests.items() if key in OFFERED}
            found[pod.node].update(asked)
    return {
        name: {key: total[key] for key in OFFERED} for name, total in sorted(found.items()) if name
    }


@settings(max_examples=draws.at_least(50))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(NODES),
            st.sampled_from(("Running", "Pending", "Failed", "Succeeded")),
            st.dictionaries(
                st.sampled_from(("cpu", "memory", "gpu", "unknown")), st.integers(0, 9)
            ),
        ),
        max_size=9,
    ),
    st.booleans(),
)
def test_sums_are_those_of_pods_added_one_by_one(placed, alike):
    nodes = [builders.node(name, more={"gpu": 1}) for name in NODES[:3]]
    shared = builders.pod("one", "a").requests
    pods = [
        builders.pod(f"p{at}", node, phase=phase, requests=asked)
        for at, (node, phase, asked) in enumerate(placed)
    ]
    if alike:
        pods += [
            msgspec.structs.replace(one, key=f"{one.key}-2", uid=f"{one.uid}-2", requests=shared)
            for one in pods
        ]
    seen = builders.picture_of(nodes, pods)
    assert dict(sorted(node_requests.requested(seen).items())) == naively(seen)
    assert node_requests.requested(seen) is node_requests.requested(seen)


def test_without_nodes_or_pods_nothing_is_requested():
    assert node_requests.requested(builders.picture_of((), [builders.pod("p", "gone")])) == {}
    assert node_requests.requested(builders.picture_of([builders.node("a")], ())) == {}


def test_amounts_that_no_node_has_leave_the_others_as_they_are():
    nodes = [builders.node("a"), builders.node("b", cpu="4")]
    pods = [
        builders.pod("huge", "a", requests={"cpu": 1 << 80}),
        builders.pod("vast", "a", requests={"cpu": 1 << 62}),
        builders.pod("plain", "b", cpu="3"),
    ]
    seen = builders.picture_of(nodes, pods)
    assert node_requests.requested(seen)["b"]["cpu"] == 3000
    table = node_fit.Table(seen)
    one = builders.pod("new", cpu="1")
    assert table.rows(["a", "b"]).fitting(one).tolist() == [False, True]


def test_resources_that_no_pod_requests_take_no_room_where_a_node_offers_thousands() -> None:
    more = {f"example.com/{at}": "1" for at in range(5000)}
    nodes = [builders.node("a"), builders.node("odd", more=more)]
    pods = [builders.pod("p", "a", requests={"cpu": "1"})]
    found = node_requests.requested(builders.picture_of(nodes, pods))
    assert found == {"a": {"cpu": 1000, "pods": 1}}


def test_what_one_pod_requests_takes_no_room_for_others_where_a_node_offers_thousands() -> None:
    more = {f"example.com/{at}": "1" for at in range(5000)}
    nodes = [*(builders.node(f"n{at}") for at in range(200)), builders.node("odd", more=more)]
    pods = [builders.pod(f"p{at}", f"n{at}", requests={"cpu": "1"}) for at in range(200)]
    seen = builders.picture_of(nodes, [*pods, builders.pod("long", "odd", requests=more)])
    found = node_requests.requested(seen)
    assert found["n7"] == {"cpu": 1000, "pods": 1}
    assert found["odd"] == {"pods": 1, **dict.fromkeys(more, 1)}
