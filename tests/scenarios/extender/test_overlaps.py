"""Two extenders on one API server have granted the same thing: one pod keeps it."""

import asyncio
import contextlib
import dataclasses
import pathlib

import aiohttp
import pytest

from api import resources
from api.kubernetes import core
from extender import app, registry
from extender.framework import verdicts
from extender.overlap import controller
from extender.settings import OverlapSettings, Settings
from extender.state import cluster_state, ledger, records
from kube.client import access as accesses
from kube.client import client as clients
from kube.controllers import recorder
from kube.informers import informer_set, reflector, store
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics, supervise
from tests.extender.clusters import slots
from tests.planes import raw
from tests.planes.processes import gate, restarting

NAME = slots.NAME
CRDS = pathlib.Path(__file__).parents[3] / "deploy" / "crds"


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
    clock, codecs, figures = clocks.SystemClock(), (slots.Slots(),), metrics.Registry()
    plane = here.plane
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    projector = records.Projector(codecs=codecs)
    cluster = cluster_state.ClusterState((slots.Slots(),), ("cpu",))
    books, live = ledger.Ledger(cluster), switches.Switches("extender")
    async with (
        clients.Client(access, clock=clock, user_agent=name, registry=figures) as api,
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
        overlaps = controller.OverlapController(parts, OverlapSettings(**chosen), figures)
        overlaps.follow(pods, store.Store())
        members.start(supervisor)
        events.start(supervisor)
        await members.synced()
        overlaps.start(supervisor)
        yield Extender(figures, books, live)


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


class Allocating(slots.Slots):
    """The same as a plug-in of a whole extender, which gives every pod the first free slot."""

    def pre_filter(self, pod, view):
        return 1

    def reserve(self, pod, prepared, view, row, grants):
        slot = slots.lowest_free(view, row)
        return slots.TAKEN if slot is None else verdicts.Grant(slot)


@pytest.fixture
def slots_plugin(monkeypatch):
    """An extender that knows the plug-in of the tests."""
    monkeypatch.setitem(registry.PLUGINS, NAME, lambda _: Allocating())


@dataclasses.dataclass
class Whole:
    """A whole extender, what lies between it and the API server, and a scheduler's calls."""

    app: app.App
    uplink: gate.Gate

    def overlaps(self):
        label = {"plugin": NAME}
        return self.app.registry.value("koord_extender_overlaps_total", label) or 0

    def knows(self, pod):
        return self.app.feeds.pods.get(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")

    async def bind(self, pod, node):
        """Ask it to bind a pod as its scheduler does; returns the error."""
        meta = pod["metadata"]
        names = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"]}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.app.url}/bind", json=names | {"Node": node}) as answer,
        ):
            return (await answer.json())["Error"]


@contextlib.asynccontextmanager
async def whole(here, name):
    plane, anywhere = here.plane, {"port": 0, "linger_seconds": 0, "announce_seconds": 0}
    async with gate.opened(plane.server, plane.ca) as uplink:
        access = accesses.Access(uplink.url, tokens=accesses.StaticToken(plane.token))
        chosen = Settings(
            server=anywhere,
            health=anywhere,
            instance=name,
            plugins={"enabled": ("BatchFit", NAME)},
            # It trusts what it has heard, however long the test takes until it binds.
            freshness={"idle_seconds": restarting.ALONE_SECONDS},
        )
        async with app.running(chosen, access=access, clock=clocks.SystemClock()) as made:
            await until(lambda: made.health.ready)
            yield Whole(made, uplink)


async def test_two_extenders_that_bind_contested_slots_leave_one_pod_on_each(
    here, watched, slots_plugin
):
    """The second one has not heard of the first one's bind, and grants the same slot again."""
    node = await here.node("a", more={slots.RESOURCE: "2"})
    pods = [
        await here.pod(name, schedulerName="none", terminationGracePeriodSeconds=30)
        for name in ("web", "job")
    ]
    async with whole(here, "one") as one, whole(here, "two") as two:
        await until(lambda: all(it.knows(pod) for it in (one, two) for pod in pods))
        go = asyncio.Event()

        async def late(call):
            if call.path == "/api/v1/pods":
                await go.wait()

        two.uplink.told = late
        assert await one.bind(pods[0], node) == ""
        assert await two.bind(pods[1], node) == ""
        found = [await here.api.get(here.path("pods", name)) for name in ("web", "job")]
        assert [pod["metadata"]["annotations"][slots.ANNOTATION] for pod in found] == ["0", "0"]
        go.set()
        keeps, leaves = await ordered(here, "web", "job")
        await until_gone(here, leaves)
        assert await remaining(here) == {keeps}
        await until(lambda: one.overlaps() == two.overlaps() == 1)
        told = await raw.eventually(lambda: notes(here, "Pod"), raw.PATIENCE)
        assert told[leaves].endswith("it was evicted")
        evictions = [
            call.path
            for it in (one, two)
            for call in it.uplink.calls
            if call.path.endswith("/eviction")
        ]
        assert set(evictions) == {here.path("pods", leaves, "eviction")}


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
        # A pod is leaving a moment before the extender hears that it was evicted.
        await until(lambda: one.evictions("evicted") == 2)
        assert one.overlaps() == 2


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
