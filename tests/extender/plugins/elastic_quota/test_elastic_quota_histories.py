"""Whatever happens, in whatever order: no bind of ours exceeds a limit, and nothing drifts."""

import asyncio
import random

import hypothesis
import pytest
from hypothesis import strategies as st

from api.kubernetes import extender as wire
from extender.settings import BindSettings
from extender.state import deltas
from extender.verbs import bind
from kube.client import errors
from kube.informers import store
from process.configuration import switches
from process.runtime import clock
from tests.extender.clusters import quota_cluster

NODES = ("n1", "n2", "n3")
QUOTAS = ("a", "b", "c")
PODS = tuple(f"p{number}" for number in range(12))
NOW = quota_cluster.NOW
MOST = {"a": 8, "b": 5, "c": 20}
"""Caps in cores; `c` is the parent of the others."""


class History:
    """Random changes of everything that quota depends on."""

    def __init__(self, chance, **rules):
        self.chance = chance
        self.cluster = quota_cluster.QuotaCluster(**rules)
        self.steps = {
            self.create: 10,
            self.bind: 14,
            self.echo: 8,
            self.end: 5,
            self.relabel: 3,
            self.nominate: 3,
            self.withdraw: 2,
            self.forget: 3,
            self.node: 3,
            self.no_node: 2,
            self.quota: 4,
            self.no_quota: 2,
            self.undo: 1,
        }
        for name in QUOTAS:
            self.quota(name)
        for name in NODES:
            self.cluster.node(name, cpu="10")

    def run(self, steps):
        kinds, weights = list(self.steps), list(self.steps.values())
        for _ in range(steps):
            self.chance.choices(kinds, weights)[0]()

    def waiting(self):
        return [pod for pod in self.cluster.pods.values() if not pod.node]

    def create(self):
        name = self.chance.choice(PODS)
        if f"default/{name}" not in self.cluster.pods:
            self.show(name, uid=f"{name}-{self.chance.random()}")

    def show(self, name, **more):
        quota = self.chance.choice(("a", "b", "", "gone"))
        chosen = {
            "cpu": self.chance.randint(1, 4),
            "priority": self.chance.choice((0, 5)),
            "preemptible": self.chance.random() < 0.8,
        }
        return self.cluster.pod(name, quota, **(chosen | more))

    def bind(self):
        if self.waiting():
            node = self.chance.choice(NODES)
            if self.cluster.state.node(node) is not None:
                self.cluster.bind(self.chance.choice(self.waiting()), node)

    def echo(self):
        """The watch shows a Binding."""
        for uid, assumed in list(self.cluster.books.assumptions.items()):
            key = assumed.placed.key
            if key in self.cluster.pods and self.cluster.pods[key].uid == uid:
                self.cluster.books.pod(self.cluster.pods[key], assumed.placed, NOW)
                self.cluster.pods[key] = assumed.placed
                return

    def end(self):
        if self.cluster.pods:
            name = self.chance.choice(list(self.cluster.pods)).partition("/")[2]
            self.cluster.gone(name)

    def relabel(self):
        """A pod moves to another quota."""
        if self.waiting():
            pod = self.chance.choice(self.waiting())
            if pod.uid not in self.cluster.books.assumptions:
                self.show(pod.name, uid=pod.uid)

    def nominate(self):
        if self.waiting():
            pod = self.chance.choice(self.waiting())
            node = self.chance.choice((*NODES, "unknown"))
            self.cluster.books.nominate(pod, node, evidence="kept")

    def withdraw(self):
        for uid in list(self.cluster.books.nominations)[:1]:
            self.cluster.books.withdraw(uid)

    def forget(self):
        for uid in list(self.cluster.books.assumptions)[:1]:
            self.cluster.books.forget(uid)

    def node(self):
        self.cluster.node(self.chance.choice(NODES), cpu=str(self.chance.choice((10, 20))))

    def no_node(self):
        name = self.chance.choice(NODES)
        if self.cluster.state.node(name) is not None:
            self.cluster.no_node(name)

    def quota(self, name=""):
        name = name or self.chance.choice(QUOTAS)
        parent = {} if name == "c" else {"parent": self.chance.choice(("c", "missing"))}
        self.cluster.quota(
            name,
            least={"cpu": str(self.chance.randint(0, MOST[name]))},
            most={"cpu": str(MOST[name]), "pods": "6"},
            is_parent=name == "c",
            **parent,
        )

    def no_quota(self):
        name = self.chance.choice(QUOTAS)
        if any(one.key.endswith(f"/{name}") for one in self.cluster.state.objects()):
            self.cluster.no_quota(name)

    def undo(self):
        """What a fork does and undoes leaves no trace."""
        before, other = self.cluster.state.fingerprint(), self.cluster.state.fork()
        done = [
            deltas.ClaimDelta(ident, claim, None)
            for ident, claim in list(other.all_claims().items())[:2]
        ]
        for delta in done:
            other.apply(delta)
        assert self.cluster.state.fingerprint() == before
        other.undo(done)
        assert other.fingerprint() == before

    def restarted(self):
        """Build anew from what the API server has, in another order."""
        fresh = quota_cluster.QuotaCluster(self.cluster.value.forest.rules)
        told = [
            lambda one=one: fresh.state.apply(one)
            for one in self.cluster.state.objects()
            if one.kind == deltas.ELASTIC_QUOTA
        ]
        told += [
            lambda pod=pod: fresh.books.pod(None, pod, NOW) for pod in self.cluster.pods.values()
        ]
        told += [
            lambda name=name: fresh.books.node(None, self.cluster.state.node(name))
            for name in self.cluster.state.nodes()
        ]
        self.chance.shuffle(told)
        for tell in told:
            tell()
        return fresh


@hypothesis.given(st.randoms(use_true_random=False), st.booleans())
def test_what_is_kept_equals_what_is_rebuilt(chance, runtime):
    history = History(chance, runtime=runtime)
    for _ in range(4):
        history.run(15)
        assert history.cluster.problems() == []
    # After a restart nothing is assumed or kept; the watch has told the rest.
    for uid in list(history.cluster.books.assumptions):
        history.cluster.books.forget(uid)
    for uid in list(history.cluster.books.nominations):
        history.cluster.books.withdraw(uid)
    assert history.restarted().value == history.cluster.value


@hypothesis.given(st.randoms(use_true_random=False))
def test_binds_alone_never_exceed_a_cap(chance):
    """Limits are only lowered by others here: what is bound stays within the caps."""
    history = History(chance, check_parents=True)
    for kind in (history.no_node, history.no_quota, history.relabel, history.quota):
        del history.steps[kind]
    for name in ("a", "b"):
        history.cluster.quota(
            name, least={"cpu": "1"}, most={"cpu": str(MOST[name]), "pods": "6"}, parent="c"
        )
    for _ in range(12):
        history.run(6)
        for name, most in MOST.items():
            assert history.firm(name) <= most * 1000


def _firm(self, quota):
    forest = self.cluster.value.forest
    return sum(
        dict(pod.requirements.requests)["cpu"]
        for pod in self.cluster.state.placements().values()
        if quota in forest.path(forest.name_of(dict(pod.requirements.inputs).get(LABEL, ""), ""))
    )


LABEL = quota_cluster.names.LABEL_QUOTA_NAME
History.firm = _firm


class Line:
    """The client of an extender: Bindings take turns of the event loop, and some fail."""

    def __init__(self, chance):
        self.chance, self.bound, self.fault = chance, {}, chance.random

    async def get(self, resource, name, namespace=""):
        raise errors.NotFound(404)

    async def patch(self, resource, name, body, *, namespace):
        raise errors.NotFound(404)

    async def bind(self, namespace, name, *, uid, node, annotations, version, guard):
        for _ in range(self.chance.randint(0, 3)):
            await asyncio.sleep(0)
        guard.check()
        fault = self.fault()
        if fault < 0.15:
            raise errors.Forbidden(403)
        if fault < 0.3:
            raise errors.NotSent("no connection")
        self.bound[uid] = node
        await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(6))
async def test_binds_at_once_never_exceed_the_quota(seed):
    """Twenty binds of one quota run at the same time; some Bindings fail and leave their room."""
    chance = random.Random(seed)
    cluster = quota_cluster.QuotaCluster()
    for name in NODES:
        cluster.node(name)
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"})
    line, pods = Line(chance), store.Store()
    asked = []
    for number in range(20):
        record = cluster.pod(f"p{number}", "team", cpu=chance.randint(1, 3))
        pods.put(store.Meta(record.key, record.uid, number + 1), record)
        node = chance.choice(NODES)
        asked.append(wire.BindingArgs(record.name, "default", record.uid, node))
    live = switches.Switches("extender")
    parts = bind.Parts(
        cluster.books, cluster.pipeline, line, pods, cluster.projector, clock.ManualClock(), live
    )
    binder = bind.Binder(parts, BindSettings())
    answers = await asyncio.gather(*(binder.bind(one) for one in asked))
    cores = {uid: dict(pod.requirements.requests)["cpu"] for uid, pod in _by_uid(cluster).items()}
    bound = sum(cores[uid] for uid in line.bound)
    assert bound == cluster.used("team") <= 10000
    refused = [text for text in answers if text.startswith("Insufficient quotas")]
    assert refused, "more was asked for than there is"
    # What failed has left its room: those that still fit get it now.
    line.fault = lambda: 1.0
    await asyncio.gather(*(binder.bind(one) for one in asked if one.pod_uid not in line.bound))
    waiting = [cores[one.pod_uid] for one in asked if one.pod_uid not in line.bound]
    assert all(cluster.used("team") + one > 10000 for one in waiting)
    assert cluster.used("team") <= 10000
    assert cluster.problems() == []


def _by_uid(cluster):
    return {pod.uid: pod for pod in cluster.pods.values()}
