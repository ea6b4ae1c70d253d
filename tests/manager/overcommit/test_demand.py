"""Sums per node: kept sums are those of the present pods and reports, whatever came before."""

from hypothesis import given
from hypothesis import strategies as st

from api.koordinator.metadata.qos import Band
from domain.lending import colocation
from kube.informers import store
from manager.model import projections
from manager.overcommit import demand
from manager.reconcile import node_objects

NODES = ("n1", "n2")
KEYS = ("ns/a", "ns/b", "ns/c")
amounts = st.builds(colocation.Amount, st.integers(0, 9_000), st.integers(0, 1 << 34))
pods = st.builds(
    projections.Pod,
    node=st.sampled_from(NODES),
    band=st.sampled_from(Band),
    request=amounts,
    exclusive=st.booleans(),
)
reports = st.builds(
    projections.Report,
    updated_at=st.none(),
    system=amounts,
    pods=st.dictionaries(st.sampled_from(KEYS), st.tuples(amounts, st.sampled_from(Band))),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.sampled_from(KEYS), st.none() | pods),
        st.tuples(st.just("report"), st.sampled_from(NODES), st.none() | reports),
        st.tuples(st.just("look"), st.sampled_from(NODES), st.none()),
    ),
    max_size=25,
)
PRESENT = node_objects.Present("n", "u", True, {}, frozenset(), frozenset())


@given(steps)
def test_kept_sums_are_those_of_what_is_there(changes) -> None:
    placed: store.Store[projections.Pod] = store.Store()
    metrics: store.Store[projections.Metric] = store.Store()
    kept = demand.Demands(placed, metrics)
    for version, (what, key, value) in enumerate(changes, start=1):
        if what == "pod":
            # A pod never changes its node; another one under its name has another identity.
            uid = value.node if value is not None else ""
            placed.put(store.Meta(key, uid, version), value)
        elif what == "report":
            metric = None if value is None else projections.Metric(PRESENT, value)
            metrics.put(store.Meta(key, "u", version), metric)
        else:
            kept.of(key)
    for node in NODES:
        metric = metrics.get(node)
        there = {key: pod for key, pod in placed.items() if pod.node == node}
        report = demand._NO_REPORT if metric is None else metric.report
        assert kept.of(node) == demand.total(there, report)


def test_an_unknown_node_holds_nothing() -> None:
    assert demand.Demands(store.Store(), store.Store()).of("n") == colocation.NO_DEMAND
