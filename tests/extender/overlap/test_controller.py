"""What the watch says of an overlap is read again before anybody is evicted."""

import json

import pytest

from api import names, resources
from api.koordinator.metadata import qos
from extender.overlap import controller
from extender.settings import OverlapSettings
from extender.state import claims, cluster_state, deltas, records
from kube.client import errors
from kube.informers import store
from process.configuration import switches
from process.runtime import metrics
from tests.extender.clusters import reservation_cluster, slots

EARLY, LATE = "2026-07-01T12:00:00Z", "2026-07-01T12:00:05Z"
WANTED = records.PodRequirements((), (), qos.Band.PROD)


def pod(name, *, slot=0, node="n1", at=EARLY, uid="", **meta):
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}"}
        | {"resourceVersion": "7", "annotations": {slots.ANNOTATION: str(slot)}, **meta},
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": "Running", "conditions": [condition] if at else []},
    }


class Api:
    """An API server that holds pods and takes evictions."""

    def __init__(self, *pods):
        self.pods = {one["metadata"]["name"]: one for one in pods}
        self.reservations, self.reads = {}, 0
        self.evicted, self.error, self.failing = [], None, None

    async def get(self, resource, name, namespace=""):
        del namespace
        known = self.reservations if resource is resources.RESERVATIONS else self.pods
        if known is self.reservations:
            self.reads += 1
            if self.failing is not None:
                raise self.failing
        if name not in known:
            raise errors.NotFound(404)
        return known[name]

    async def evict(self, namespace, name, *, uid, resource_version):
        if self.error is not None:
            raise self.error
        self.evicted.append((f"{namespace}/{name}", uid, resource_version))


class World:
    """An overlap as the watch showed it: `a` was bound before `b`."""

    def __init__(self, api, clock, **chosen):
        self.api, self.told = api, []
        self.codecs = (slots.Slots(),)
        self.cluster = cluster_state.ClusterState(self.codecs, ("cpu",))
        self.live = switches.Switches("extender")
        self.registry = metrics.Registry()
        self.seen("a", 100.0)
        self.seen("b", 200.0)
        parts = controller.Parts(
            api, clock, self.cluster, self.codecs,
            records.Projector(codecs=self.codecs), self, self.live,
        )  # fmt: skip
        settings = OverlapSettings(**chosen)
        self.controller = controller.OverlapController(parts, settings, self.registry)

    def seen(self, name, at, slot=0):
        granted = {slots.NAME: slots.Slot(slot)}
        record = records.PodRecord(
            f"ns/{name}", f"uid-{name}", "n1", WANTED, at, allocations=granted
        )
        claim = claims.Claim(record.uid, claims.ClaimKind.BOUND, "n1", record, granted)
        self.cluster.apply(deltas.ClaimDelta(claim.id, self.cluster.claim(claim.id), claim))
        return record

    def event(self, regarding, kind, reason, note, action=""):
        self.told.append((regarding.kind, regarding.name, note))
        return True


TWO = (pod("a"), pod("b", at=LATE))


@pytest.mark.parametrize(
    ("pods", "evicted"),
    [
        pytest.param(TWO, "b", id="as the watch showed it"),
        pytest.param((pod("a"),), "", id="the later one is gone"),
        pytest.param((pod("b", at=LATE),), "", id="the earlier one is gone"),
        pytest.param((pod("a"), pod("b", uid="new", at=LATE)), "", id="another of its name"),
        pytest.param((pod("a", uid="new"), pod("b", at=LATE)), "", id="the earlier is another"),
        pytest.param((pod("a"), pod("b", node="n2", at=LATE)), "", id="on another node"),
        pytest.param((pod("a"), pod("b", slot=1, at=LATE)), "", id="holds something else"),
        pytest.param(
            (pod("a"), pod("b", at=LATE, deletionTimestamp=LATE)), "", id="is leaving already"
        ),
        pytest.param((pod("a", at=LATE), pod("b")), "a", id="the other was bound later"),
        pytest.param((pod("a", at=""), pod("b", at="")), "b", id="neither says when"),
        pytest.param(
            (pod("a", at=LATE, deletionTimestamp=LATE), pod("b")), "", id="the other leaves"
        ),
    ],
)
async def test_only_what_the_api_server_confirms_is_evicted(clock, pods, evicted):
    api = Api(*pods)
    world = World(api, clock)
    outcome = await world.controller.reconcile("n1")
    assert api.evicted == ([(f"ns/{evicted}", f"uid-{evicted}", "7")] if evicted else [])
    assert outcome.requeue_after == 30
    assert [kind for kind, *_ in world.told] == (["Pod", "Node"] if evicted else [])


@pytest.mark.parametrize(
    ("error", "result", "again", "said"),
    [
        pytest.param(errors.Conflict(409), "changed", 1, "", id="evicted by another extender"),
        pytest.param(errors.NotFound(404), "changed", 1, "", id="gone meanwhile"),
        pytest.param(errors.TooManyRequests(429), "refused", 30, "was refused: 429", id="a budget"),
        pytest.param(errors.Forbidden(403), "refused", 30, "was refused: 403", id="no permission"),
    ],
)
async def test_an_eviction_that_is_refused_is_told_and_tried_again(
    clock, error, result, again, said
):
    api = Api(*TWO)
    api.error = error
    world = World(api, clock)
    outcome = await world.controller.reconcile("n1")
    assert outcome.requeue_after == again
    counted = world.registry.value("koord_extender_overlap_evictions_total", {"result": result})
    assert counted == 1
    assert all(said in note for _, _, note in world.told)
    assert bool(world.told) is bool(said)


@pytest.mark.parametrize(
    ("chosen", "mode", "told"),
    [
        pytest.param({"evict": False}, "enforce", True, id="not to be evicted"),
        pytest.param({}, "observe", True, id="observed"),
        pytest.param({}, "off", False, id="off"),
    ],
)
async def test_where_nothing_is_evicted_it_is_told_once_per_pair(clock, chosen, mode, told):
    api = Api(*TWO)
    world = World(api, clock, **chosen)
    world.live.take({"extender": mode})
    for _ in range(3):
        await world.controller.reconcile("n1")
    assert api.evicted == []
    counted = world.registry.value("koord_extender_overlaps_total", {"plugin": slots.NAME})
    assert (counted or 0) == told
    assert bool(world.told) is told


async def test_pods_that_hold_nothing_twice_are_no_work(clock):
    world = World(Api(), clock)
    pods = store.Store()
    record = world.seen("c", 300.0, slot=5)
    world.controller.follow(pods, store.Store())
    pods.put(store.Meta("ns/c", "uid-c", 1), record)
    assert len(world.controller._queue) == 0
    pods.put(store.Meta("ns/b", "uid-b", 2), world.seen("b", 200.0))
    assert len(world.controller._queue) == 1


USES = {names.ANNOTATION_RESERVATION_ALLOCATED: {"name": "r", "uid": "uid-r"}}


class Reserved:
    """Two pods of two extenders that were granted one Reservation which is allocated once."""

    def __init__(self, api, clock):
        self.told = []
        self.cluster = reservation_cluster.ReservationCluster(("Reservation", "DeviceShare"))
        self.cluster.node()
        codecs = self.cluster.codecs
        parts = controller.Parts(
            api, clock, self.cluster.books.cluster, codecs, self.cluster.projector, self,
            switches.Switches("extender"),
        )  # fmt: skip
        self.registry = metrics.Registry()
        self.controller = controller.OverlapController(parts, OverlapSettings(), self.registry)
        self.pods, self.reserved = store.Store(), store.Store()
        self.controller.follow(self.pods, self.reserved)

    def event(self, regarding, kind, reason, note, action=""):
        self.told.append((regarding.kind, regarding.name, note))
        return True

    def raw(self, name, at, notes=USES, **more):
        """A bound pod, that uses the Reservation unless other annotations are given."""
        raw = self.cluster.raw(name, node="n1", annotations=notes, **more)
        raw["metadata"]["resourceVersion"] = "7"
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
        return {**raw, "status": {"phase": "Running", "conditions": [condition]}}


@pytest.mark.parametrize("used_up", [False, True], ids=["available", "used up meanwhile"])
async def test_of_two_pods_in_one_reservation_that_is_allocated_once_the_later_leaves(
    clock, used_up
):
    api = Api()
    world = Reserved(api, clock)
    claim = world.cluster.reservation("r", once=True)
    for name, at in (("a", EARLY), ("b", LATE)):
        raw = world.raw(name, at)
        api.pods[name] = raw
        world.cluster.show(name, raw)
    if used_up:
        world.controller._remember(store.Change("r", claim, None))
        world.cluster.end("r")
    await world.controller.reconcile("n1")
    assert api.evicted == [("default/b", "uid-b", "7")]
    assert "allocated to default/b was allocated to default/a" in world.told[0][2]


@pytest.mark.parametrize(
    ("more", "evicted"),
    [
        pytest.param({"once": True, "phase": "Succeeded"}, ["b"], id="used up before the start"),
        pytest.param({"once": True, "phase": "Failed"}, [], id="it has expired"),
        pytest.param({"once": False, "phase": "Succeeded"}, [], id="for many"),
        pytest.param({"once": True, "phase": "Succeeded", "uid": "new"}, [], id="another one"),
        pytest.param(None, [], id="it is gone"),
    ],
)
async def test_after_a_restart_a_reservation_is_read_that_two_pods_use(clock, more, evicted):
    api = Api()
    world = Reserved(api, clock)
    if more is not None:
        api.reservations["r"] = reservation_cluster.written("r", **more)
    for number, (name, at) in enumerate((("a", EARLY), ("b", LATE)), start=1):
        api.pods[name] = raw = world.raw(name, at)
        world.cluster.show(name, raw)
        record = world.cluster.pods[name]
        world.pods.put(store.Meta(record.key, record.uid, number), record)
        assert len(world.controller._queue) == number - 1
    for _ in range(3):
        await world.controller.reconcile("n1")
    assert {name for name, *_ in api.evicted} == {f"default/{name}" for name in evicted}
    assert api.reads == 1, "what was read is kept"


GPU = {"cpu": "1", "nvidia.com/gpu": "1"}
AMOUNTS = {names.GPU_CORE: "100", names.GPU_MEMORY_RATIO: "100"}
HOLDS = {
    names.ANNOTATION_DEVICE_ALLOCATED: json.dumps({"gpu": [{"minor": 1, "resources": AMOUNTS}]})
}


@pytest.mark.parametrize(
    ("now", "owner", "evicted"),
    [
        pytest.param({}, False, True, id="it keeps it"),
        pytest.param({}, True, False, id="an owner has it"),
        pytest.param({"phase": "Failed"}, False, False, id="it has expired meanwhile"),
        pytest.param({"annotations": {}}, False, False, id="it keeps something else"),
        pytest.param({"placed_at": LATE, "uid": "new"}, False, False, id="it is another one"),
        pytest.param(None, False, False, id="it is gone"),
    ],
)
async def test_a_pod_leaves_that_another_extender_gave_what_a_reservation_keeps(
    clock, now, owner, evicted
):
    api = Api()
    world = Reserved(api, clock)
    known = {"requests": GPU, "annotations": HOLDS, "placed_at": EARLY}
    claim = world.cluster.reservation("r", **known)
    if now is not None:
        api.reservations["r"] = reservation_cluster.written("r", **{**known, **now})
    notes = {**HOLDS, **(USES if owner else {})}
    api.pods["a"] = raw = world.raw("a", LATE, notes, app="mine" if owner else "x", requests=GPU)
    world.cluster.show("a", raw)
    world.reserved.put(store.Meta("r", claim.pod.uid, 1), claim)
    assert len(world.controller._queue) == (not owner)
    await world.controller.reconcile("n1")
    assert api.evicted == ([("default/a", "uid-a", "7")] if evicted else [])
    if evicted:
        assert "allocated to default/a was allocated to Reservation r" in world.told[0][2]


@pytest.mark.parametrize("name", ["r", "../../api/v1/secrets", ""])
async def test_a_reservation_that_cannot_be_read_keeps_no_overlap_from_being_resolved(clock, name):
    api = Api()
    world = Reserved(api, clock)
    api.failing = errors.Forbidden(403)
    note = {names.ANNOTATION_RESERVATION_ALLOCATED: {"name": name, "uid": "uid-r"}}
    for pod_name, at in (("a", EARLY), ("b", LATE)):
        raw = world.raw(pod_name, at, {**note, **HOLDS}, requests=GPU)
        api.pods[pod_name] = raw
        world.cluster.show(pod_name, raw)
    await world.controller.reconcile("n1")
    assert api.evicted == [("default/b", "uid-b", "7")]
    assert api.reads == (name == "r")
