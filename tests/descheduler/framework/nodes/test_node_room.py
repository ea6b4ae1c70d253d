"""What is requested and free of nodes, while pods move in thought."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descheduler.framework import protocols
from descheduler.framework.nodes import emptying, node_fit, node_room
from tests.descheduler import builders
from tests.descheduler.plugins import driving


def room_of(nodes, pods):
    seen = builders.picture_of(nodes, pods)
    return node_room.Room(driving.view(seen)), seen


def test_amounts_are_of_nodes_in_their_order_and_nothing_where_they_offer_none():
    nodes = [builders.node("b", cpu="4", more={"gpu": 2}), builders.node("a", cpu="2")]
    pods = [
        builders.pod("p", "b", requests={"cpu": "1", "gpu": 1, "unknown": 3}),
        builders.pod("ended", "b", phase="Failed"),
    ]
    room, _ = room_of(nodes, pods)
    requested, allocatable = room.amounts(("cpu", "gpu", "unknown"))
    assert room.names == ("a", "b")
    assert requested.tolist() == [[0, 0, 0], [1000, 1, 0]]
    assert allocatable.tolist() == [[2000, 0, 0], [4000, 2, 0]]
    assert room.shares(("cpu", "gpu")).tolist() == [[0.0, 0.0], [0.25, 0.5]]


def test_without_nodes_there_is_nothing():
    room, _ = room_of((), [builders.pod("p", "gone")])
    assert room.amounts(("cpu",))[0].shape == (0, 1)
    assert room.listed(room.flags(["gone"])) == ()


def test_a_pod_may_come_from_and_go_to_nodes_that_are_not_looked_at():
    room, seen = room_of([builders.node("a")], [builders.pod("p", "elsewhere")])
    pod = seen.pods["uid-p"]
    room.move(pod, "a")
    assert room.amounts(("cpu",))[0].tolist() == [[1000]]
    room.take_back(pod, "a")
    room.move(pod, "")
    assert room.amounts(("cpu",))[0].tolist() == [[0]]


def test_resources_that_nobody_asks_about_take_no_room_where_a_node_offers_thousands():
    more = {f"example.com/{at}": "1" for at in range(10_000)}
    nodes = [builders.node(f"n{at}", more={"gpu": 1}) for at in range(300)]
    pods = [builders.pod("p", "n1", requests={"cpu": "1", "gpu": 1})]
    seen = builders.picture_of([*nodes, builders.node("odd", more=more)], pods)
    tracemalloc.start()
    try:
        room = node_room.Room(driving.view(seen))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 16 << 20
    room.move(seen.pods["uid-p"], "n0")
    requested, allocatable = room.amounts(("gpu", "example.com/7"))
    assert requested[:2].tolist() == [[1, 0], [0, 0]]
    assert allocatable[-1].tolist() == [0, 1]
    assert room.takers(builders.pod("q", "n1", requests={"example.com/7": 1})).sum() == 1


@pytest.mark.parametrize("cpu", ["9223372036854775807", "-9223372036854775807"])
def test_amounts_that_no_machine_has_end_nothing(cpu):
    nodes = [builders.node("a", cpu=cpu), builders.node("b", cpu="4")]
    room, seen = room_of(nodes, [builders.pod("p", "b", cpu=cpu), builders.pod("q", "b")])
    pod = seen.pods["uid-p"]
    before = [found.tolist() for found in room.amounts(("cpu",))]
    for target in ("a", "b", ""):
        room.move(pod, target)
        room.takers(pod)
        room.take_back(pod, target)
    assert [found.tolist() for found in room.amounts(("cpu",))] == before
    assert abs(int(node_room.asked(pod, ("cpu",))[0])) < 1 << 60
    assert room.amounts(("cpu",))[1][1].tolist() == [4000]


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 8)), max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), max_size=6),
)
def test_moves_count_as_if_the_pods_had_been_there(placed, moves):
    nodes = [builders.node(f"n{at}", cpu="10") for at in range(3)]
    at = {f"p{place}": f"n{node}" for place, (node, _) in enumerate(placed)}
    pods = [
        builders.pod(f"p{place}", f"n{node}", cpu=str(size))
        for place, (node, size) in enumerate(placed)
    ]
    room, seen = room_of(nodes, pods)
    for place, node in moves:
        name = f"p{place}"
        pod = seen.pods.get(f"uid-{name}")
        if pod is not None and at[name] == pod.node:
            room.move(pod, f"n{node}")
            at[name] = f"n{node}"
    now = builders.picture_of(
        nodes,
        [
            builders.pod(one.name, at[one.name], cpu=str(one.requests["cpu"] // 1000))
            for one in pods
        ],
    )
    fresh, table = node_room.Room(driving.view(now)), node_fit.Table(now)
    assert np.array_equal(room.amounts(("cpu", "pods"))[0], fresh.amounts(("cpu", "pods"))[0])
    newcomer = builders.pod("new", cpu="3")
    takers = table.rows([node.name for node in nodes]).fitting(newcomer)
    expected = tuple(node.name for node, fits in zip(nodes, takers, strict=True) if fits)
    assert room.listed(room.takers(newcomer)) == expected


def task(room, pods, **fields):
    among = room.flags([name for name in room.names if name != "a"])
    return emptying.Task("a", tuple(pods), among, "Test", "because", **fields)


def test_a_node_is_planned_for_without_changing_the_room():
    nodes = [builders.node(name, cpu="3") for name in "abc"]
    pods = [
        builders.pod("p", "a", cpu="2"),
        builders.pod("q", "a", cpu="2"),
        builders.pod("r", "c"),
    ]
    room, _ = room_of(nodes, pods)
    before = room.amounts(("cpu",))[0].copy()
    assert emptying.places(room, task(room, pods[:2])) == {"uid-p": "c", "uid-q": "b"}
    assert emptying.places(room, task(room, [*pods[:2], builders.pod("s", "a", cpu="2")])) is None
    assert np.array_equal(room.amounts(("cpu",))[0], before)


def ended(asked, answers):
    """Answer a plug-in that suggests until it ends; return what it says then."""
    try:
        for answer in answers:
            asked.send(answer)
    except StopIteration as end:
        return end.value
    raise AssertionError("it goes on")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([protocols.Target("b"), True], {"uid-p": "b", "uid-q": "c"}, id="both leave"),
        pytest.param([True, False], {"uid-p": "c"}, id="the second stays"),
        pytest.param([False], {}, id="the first stays"),
    ],
)
def test_what_has_moved_is_told(answers, expected):
    nodes = [builders.node(name, cpu="3") for name in "abc"]
    pods = [
        builders.pod("p", "a", cpu="2"),
        builders.pod("q", "a", cpu="2"),
        builders.pod("r", "c"),
    ]
    room, seen = room_of(nodes, pods)
    asked = emptying.empty(driving.view(seen), room, task(room, pods[:2]))
    next(asked)
    assert ended(asked, answers) == expected


def test_it_stops_where_the_scheduler_left_no_room_for_the_next():
    """The plan had the large pod on the large node; the scheduler put the small one there."""
    nodes = [builders.node("a"), builders.node("b", cpu="3"), builders.node("c", cpu="2")]
    pods = [builders.pod("small", "a", cpu="1"), builders.pod("large", "a", cpu="3")]
    room, seen = room_of(nodes, [*pods, builders.pod("r", "c", cpu="1")])
    asked = emptying.empty(driving.view(seen), room, task(room, pods))
    assert next(asked).targets == ("b", "c")
    assert ended(asked, [protocols.Target("b")]) == {"uid-small": "b"}
