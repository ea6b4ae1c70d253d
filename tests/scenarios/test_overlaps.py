"""Two extenders on one API server have granted the same thing: one pod keeps it."""

import asyncio
import contextlib
import dataclasses

import pytest

from api import resources
from api.kubernetes import core
from extender.overlap import controller
from extender.settings import OverlapSettings
from extender.state import cluster_state, ledger, records
from kube.client import access as accesses
from kube.client import client as clients
from kube.controllers import recorder
from kube.informers import informer_set, reflector
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics, supervise
from tests.extender import slots
from tests.planes import raw

NAME = slots.NAME


@dataclasses.dataclass
class Extender:
    """What one extender has to find and to resolve overlaps."""

    registry: metrics.Registry
    books: ledger.Ledger
    live: switches.Switches

    def evictions(self, result):
        name = "koord_extender_overlap_evictions_total"
        return self.registry.value(name, {"result": result}) or 0

    def overlaps(self):
        return self.registry.value("koord_extender_overlaps_total", {"plugin": NAME}) or 0


@contextlib.asynccontextmanager
async def running(here, name, **chosen):
    clock, codecs, registry = clocks.SystemClock(), (slots.Slots(),), metrics.Registry()
    plane = here.plane
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    projector = records.Projector(codecs=codecs)
    cluster = cluster_state.ClusterState((slots.Slots(),), ("cpu",))
    books, live = ledger.Ledger(cluster), switches.Switches("extender")
    async with (
        clients.Client(access, clock=clock, user_agent=name, registry=registry) as api,
        supervise.Supervisor(name) as supervisor,
    ):
        members = informer_set.InformerSet(api, clock)
        only = f"metadata.namespace={here.namespace}"
        pods = members.add(
            reflector.Projection(resources.PODS, core.Pod, projector.pod, fields=only)
        )
        pods.listen(lambda change: books.pod(change.old, change.new, clock.now()))
        events = recorder.Recorder(api, "koord-extender", clock, instance=name)
        parts = controller.Parts(api, clock, cluster, codecs, projector, events, live)
        overlaps = controller.OverlapController(parts, OverlapSettings(**chosen), registry)
        overlaps.follow(pods)
        members.start(supervisor)
        events.start(supervisor)
        await members.synced()
        overlaps.start(supervisor)
        yield Extender(registry, books, live)


async def bound(here, name, node, slot, **more):
    """Bind a pod as an extender would that knows nothing of others."""
    pod = await here.pod(name, schedulerName="none", terminationGracePeriodSeconds=30, **more)
    notes = {slots.ANNOTATION: str(slot)}
    body = {
        "metadata": {"name": name, "uid": pod["metadata"]["uid"], "annotations": notes},
        "target": {"kind": "Node", "name": node},
    }
    await here.api.post(here.path("pods", name, "binding"), body)


async def ordered(here, *names):
    """The pods in the order in which they were bound."""

    def rank(pod):
        (at,) = [c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]
        return at["lastTransitionTime"], pod["metadata"]["uid"]

    pods = [await here.api.get(here.path("pods", name)) for name in names]
    return [pod["metadata"]["name"] for pod in sorted(pods, key=rank)]


async def leaving(here):
    found = (await here.api.get(here.path("pods")))["items"]
    return {p["metadata"]["name"] for p in found if "deletionTimestamp" in p["metadata"]}


async def until(condition):
    async def met():
        return condition()

    await raw.eventually(met, raw.PATIENCE)


async def notes(here, kind):
    """What events say about objects of a kind."""
    path = "/apis/events.k8s.io/v1/events"
    found = (await here.api.get(path))["items"]
    return {
        event["regarding"]["name"]: event["note"]
        for event in found
        if event["reason"] == "AllocationsOverlap"
        and event["regarding"]["kind"] == kind
        and here.namespace in event["note"]
    }


async def test_two_extenders_evict_the_later_pod_once(here):
    node = await here.node("a")
    async with running(here, "one") as one, running(here, "two") as two:
        await bound(here, "other", node, 1)
        await asyncio.gather(bound(here, "web", node, 0), bound(here, "job", node, 0))
        keeps, leaves = await ordered(here, "web", "job")
        await until(lambda: one.evictions("evicted") + two.evictions("evicted") == 1)
        await until(lambda: one.overlaps() == two.overlaps() == 1)
        await until_gone(here, leaves)
        assert await remaining(here) == {"other", keeps}
        assert one.evictions("evicted") + two.evictions("evicted") == 1
        told = await raw.eventually(lambda: notes(here, "Node"), raw.PATIENCE)
        assert f"allocated to {here.namespace}/{leaves} was" in told[node]
        assert f"{here.namespace}/{keeps}, which was bound earlier; it was evicted" in told[node]


async def until_gone(here, name):
    """Wait for the eviction; a pod without a kubelet leaves when somebody plays it."""

    async def gone():
        answer = await here.api.call("GET", here.path("pods", name))
        return answer.status == 404 or "deletionTimestamp" in answer.body["metadata"]

    await raw.eventually(gone, raw.PATIENCE)


async def remaining(here):
    found = (await here.api.get(here.path("pods")))["items"]
    return {p["metadata"]["name"] for p in found if "deletionTimestamp" not in p["metadata"]}


async def test_overlaps_that_a_start_finds_are_resolved_as_well(here):
    node = await here.node("a")
    for name in ("a", "b", "c"):
        await bound(here, name, node, 0)
    keeps, *leave = await ordered(here, "a", "b", "c")
    async with running(here, "one") as one:
        for name in leave:
            await until_gone(here, name)
        assert await remaining(here) == {keeps}
        assert (one.overlaps(), one.evictions("evicted")) == (2, 2)


@pytest.mark.parametrize("how", ["setting", "switch"])
async def test_where_evicting_is_off_it_is_only_told(here, how):
    node = await here.node("a")
    async with running(here, "one", evict=how != "setting") as one:
        if how == "switch":
            one.live.take({"extender": "observe"})
        for name in ("a", "b"):
            await bound(here, name, node, 0)
        _, later = await ordered(here, "a", "b")
        told = await raw.eventually(lambda: notes(here, "Pod"), raw.PATIENCE)
        assert told[later].endswith("it is left in place")
        assert one.overlaps() == 1
        assert await remaining(here) == {"a", "b"}


async def test_evictions_are_limited_in_their_rate(here):
    node = await here.node("a")
    for name in ("a", "b", "c"):
        await bound(here, name, node, 0)
    async with running(here, "one", per_second=0.01, burst=1) as one:
        await until(lambda: one.overlaps() == 2 and one.evictions("evicted") == 1)
        assert len(await remaining(here)) == 2


async def test_what_a_budget_protects_is_told_and_stays(here):
    node = await here.node("a")
    for name in ("a", "b"):
        await bound(here, name, node, 0, labels={"app": "shop"})
        conditions = [{"type": "Ready", "status": "True"}]
        body = {"status": {"phase": "Running", "conditions": conditions}}
        await here.api.patch(here.path("pods", name, "status"), body, kind=raw.STRATEGIC_PATCH)
    selector = {"matchLabels": {"app": "shop"}}
    budget = {"metadata": {"name": "all"}, "spec": {"minAvailable": 2, "selector": selector}}
    path = here.path("poddisruptionbudgets", group="policy/v1")
    await here.api.post(path, budget)

    async def counted():
        status = (await here.api.get(f"{path}/all")).get("status", {})
        return status.get("expectedPods") == 2

    await raw.eventually(counted, raw.PATIENCE)
    async with running(here, "one") as one:
        await until(lambda: one.evictions("refused") == 1)
        told = await raw.eventually(lambda: notes(here, "Pod"), raw.PATIENCE)
        (_, later) = await ordered(here, "a", "b")
        assert "its eviction was refused: 429" in told[later]
        assert await remaining(here) == {"a", "b"}
