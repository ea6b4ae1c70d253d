"""Sums of pods by node, kept in step with any order of changes."""

import hypothesis
from hypothesis import strategies

from kube.informers import store
from manager.console.views import pods

KEYS = ("a/x", "a/y", "b/x")
SHAPES = (
    pods.Asked("LS", "koord-prod", 500, 1 << 30, 0, 0),
    pods.Asked("BE", "koord-batch", 0, 0, 2000, 1 << 30),
)
WAITS = pods.Waiting("not tried yet", "not tried yet", 0.0, "s", 0)


@strategies.composite
def found(draw, key):
    if draw(strategies.booleans()):
        return None
    node = draw(strategies.sampled_from(("", "n1", "n2")))
    namespace, _, name = key.partition("/")
    return pods.Pod(
        namespace, name, node, draw(strategies.sampled_from(SHAPES)),
        None if node else WAITS, draw(strategies.sampled_from(("", "a/g"))),
    )  # fmt: skip


CHANGES = strategies.lists(
    strategies.sampled_from(KEYS).flatmap(
        lambda key: strategies.tuples(strategies.just(key), found(key))
    ),
    max_size=30,
)


def figures(index):
    return (
        {name: (one.cpu, one.memory, one.batch_cpu, one.batch_memory, one.batch_pods, one.keys)
         for name, one in index.nodes},
        index.waiting,
        index.placed,
        dict.fromkeys(index.waiting_namespaces),
        {gang: index.of_gang(gang) for gang in index.gangs},
    )  # fmt: skip


@hypothesis.given(CHANGES)
def test_any_order_of_changes_ends_in_what_is_there(changes) -> None:
    index, present = pods.PodIndex(), {}
    for key, new in changes:
        index.changed(store.Change(key, present.get(key), new))
        if new is None:
            present.pop(key, None)
        else:
            present[key] = new
    fresh = pods.PodIndex()
    for key, one in present.items():
        fresh.changed(store.Change(key, None, one))
    assert figures(index) == figures(fresh)


def test_a_change_that_was_never_told_takes_nothing_off() -> None:
    index = pods.PodIndex()
    gone = pods.Pod("a", "x", "n1", SHAPES[0], gang="a/g")
    index.changed(store.Change("a/x", gone, None))
    assert index.placed == 0
    assert not list(index.nodes)
