"""Any order of binding, echo, repetition and expiry leaves the picture equal to the truth."""

import hypothesis
import msgspec
import pytest
from hypothesis import stateful
from hypothesis import strategies as st

from api.koordinator.metadata import qos
from domain.usage import load
from extender import plugin_selection, registry, settings
from extender.state import claims, cluster_state, deltas, invariants, ledger, lending, records

NODES = ("n1", "n2", "n3")
PODS = ("a", "b", "c")


def _cluster():
    built = registry.build(plugin_selection.select(settings.PluginSettings()))
    return cluster_state.ClusterState(
        registry.state_trackers(built.plugins.values()), ("cpu", "memory")
    )


def _pod(name, incarnation, node):
    batch = name == "b"
    demand = records.PodRequirements(
        requests=(("kubernetes.io/batch-cpu" if batch else "cpu", 1000 + incarnation),),
        limits=(),
        band=qos.Band.BATCH if batch else qos.Band.PROD,
    )
    return records.PodRecord(f"ns/{name}", f"{name}-{incarnation}", node, demand, 5.0)


@hypothesis.settings(max_examples=60, stateful_step_count=40, deadline=None)
class Interleavings(stateful.RuleBasedStateMachine):
    """Binds race with watch events that come late, twice, or after a restart."""

    def __init__(self):
        super().__init__()
        self.books = ledger.Ledger(_cluster())
        self.books.unscheduled.wanted = frozenset({deltas.UNSCHEDULED_POD})
        self.server = {}
        self.seen = {}
        self.incarnation = 0
        self.time = 0.0
        for name in NODES:
            node = records.NodeRecord(name, (("cpu", 64000),), (("cpu", 64000),))
            self.books.node(None, node)

    @stateful.rule(name=st.sampled_from(PODS))
    def create(self, name):
        if name not in self.server:
            self.incarnation += 1
            self.server[name] = _pod(name, self.incarnation, "")

    @stateful.rule(name=st.sampled_from(PODS))
    def delete(self, name):
        self.server.pop(name, None)

    @stateful.rule(name=st.sampled_from(PODS), node=st.sampled_from(NODES), answered=st.booleans())
    def bind(self, name, node, answered):
        pod = self.seen.get(name)
        if pod is None or pod.node or pod.uid in self.books.assumptions:
            return
        self.books.assume(pod, node, 5.0, self.time)
        live = self.server.get(name)
        if live is not None and live.uid == pod.uid and not live.node:
            self.server[name] = msgspec.structs.replace(live, node=node)
            if not answered:
                self.books.mark_uncertain(pod.uid)
        else:
            self.books.forget(pod.uid)

    @stateful.rule(name=st.sampled_from(PODS))
    def echo(self, name):
        old, new = self.seen.get(name), self.server.get(name)
        if old is not None and new is not None and old.uid != new.uid:
            self.books.pod(old, None, 5.0)
            old = None
        self.books.pod(old, new, 5.0)
        if new is None:
            self.seen.pop(name, None)
        else:
            self.seen[name] = new

    @stateful.rule()
    def expire(self):
        self.time += 10.0
        for promise in self.books.expired(self.time - 5.0):
            name = promise.placed.name
            live = self.server.get(name)
            if live is not None and live.uid == promise.placed.uid and live.node:
                self.books.renew(promise.placed.uid, self.time)
            else:
                self.books.forget(promise.placed.uid)

    @stateful.rule(name=st.sampled_from(NODES), present=st.booleans())
    def node(self, name, present):
        old = self.books.cluster.node(name)
        node = records.NodeRecord(name, (("cpu", 64000),), (("cpu", 64000),))
        if present != (old is not None):
            self.books.node(old, node if present else None)

    @stateful.invariant()
    def holds(self):
        assert invariants.check(self.books, self.seen.values()) == []

    def teardown(self):
        for name in PODS:
            self.echo(name)
        self.time += 1000.0
        self.expire()
        assert not self.books.assumptions
        expected = {pod.uid: pod.node for pod in self.server.values() if pod.node}
        counted = {uid: pod.node for uid, pod in self.books.cluster.placements().items()}
        assert counted == expected


TestInterleavings = Interleavings.TestCase


_AMOUNT = st.integers(min_value=0, max_value=1 << 52)


@hypothesis.given(
    steps=st.lists(
        st.tuples(st.sampled_from(PODS), st.sampled_from((*NODES, None)), _AMOUNT), max_size=12
    )
)
def test_every_delta_has_an_inverse(steps):
    cluster = _cluster()
    for name in NODES:
        node = records.NodeRecord(name, (("cpu", 64000),), (("cpu", 64000),))
        cluster.apply(deltas.NodeDelta(name, None, node))
    undo = []
    before = cluster.fingerprint()
    for name, node, amount in steps:
        pod = _pod(name, amount, node) if node else None
        uid = f"{name}-fixed"
        pod = msgspec.structs.replace(pod, uid=uid) if pod else None
        bound = claims.ClaimKind.BOUND
        claim = claims.Claim(uid, bound, node, pod) if pod and node else None
        delta = deltas.ClaimDelta(uid, cluster.claim(uid), claim)
        cluster.apply(delta)
        undo.append(deltas.inverse(delta))
    for delta in reversed(undo):
        cluster.apply(delta)
    assert cluster.fingerprint() == before


def test_a_pod_without_a_condition_is_dated_when_first_seen():
    books = ledger.Ledger(_cluster())
    pod = msgspec.structs.replace(_pod("a", 1, "n1"), assigned_at=-1.0)
    books.pod(None, pod, 77.0)
    books.pod(pod, pod, 99.0)
    assert books.cluster.placed(pod.uid).assigned_at == 77.0


def test_the_echo_of_a_kept_promise_changes_nothing():
    cluster = _cluster()
    cluster.apply(deltas.NodeDelta("n1", None, records.NodeRecord("n1", (("cpu", 9000),), ())))
    books = ledger.Ledger(cluster)
    waiting = msgspec.structs.replace(_pod("a", 1, ""), assigned_at=-1.0)
    books.assume(waiting, "n1", 77.9, 0.0)
    cluster.view()
    # The API server writes moments in whole seconds.
    books.pod(waiting, msgspec.structs.replace(waiting, node="n1", assigned_at=77.0), 78.0)
    assert cluster.stale_rows() == 0
    assert not books.assumptions


def test_changes_of_nodes_reports_and_rules_can_be_undone():
    cluster = _cluster()
    node = records.NodeRecord("n1", (("cpu", 64000),), (("cpu", 64000),))
    report = load.Report(1.0, 60.0, (1, 1), (0, 0), (), {})
    rules = lending.LendingRules({"enable": True})
    empty = cluster.fingerprint()
    done = [
        deltas.NodeDelta("n1", None, node),
        deltas.ReportDelta("n1", None, report),
        deltas.LendingDelta(cluster.rules(), rules),
    ]
    for delta in done:
        cluster.apply(delta)
    assert cluster.rules() == rules
    for delta in reversed(done):
        cluster.apply(deltas.inverse(delta))
    assert cluster.fingerprint() == empty
    assert cluster.rules() == lending.LendingRules()


def _node(uid, created):
    figures = (("cpu", 64000),)
    return records.NodeRecord("n1", figures, figures, uid=uid, created_at=created)


def _report(updated):
    return load.Report(updated, 60.0, usage=(1000, 0), system=(0, 0), windows=(), pods={})


@pytest.mark.parametrize("first", ["node", "report"])
def test_a_machine_set_up_anew_does_not_inherit_the_report_of_its_name(first):
    """Whatever comes first; a report of its own counts, and one without a time is kept."""
    books, old, new = ledger.Ledger(_cluster()), _node("a", 100.0), _node("b", 500.0)
    books.node(None, old)
    books.report("n1", _report(450.0))
    assert books.cluster.report("n1") is not None
    steps = {
        "node": (lambda: books.node(old, new), lambda: books.report("n1", _report(460.0))),
        "report": (lambda: books.report("n1", _report(460.0)), lambda: books.node(old, new)),
    }
    for step in steps[first]:
        step()
    assert books.cluster.report("n1") is None
    assert invariants.drifted(books.cluster) == []
    books.report("n1", _report(500.0))
    assert books.cluster.report("n1").updated_at == 500.0
    # The same machine that only changed keeps it, and one that came back without a watch event.
    books.node(new, msgspec.structs.replace(new, labels={"a": "b"}))
    assert books.cluster.report("n1") is not None
    books.node(new, None)
    books.node(None, _node("c", 900.0))
    assert books.cluster.report("n1") is None
    books.report("n1", _report(None))
    assert books.cluster.report("n1") is not None
