"""What the watch says of an overlap is read again before anybody is evicted."""

import pytest

from api.koordinator.metadata import qos
from extender.overlap import controller
from extender.settings import OverlapSettings
from extender.state import claims, cluster_state, deltas, records
from kube.client import errors
from kube.informers import store
from process.configuration import switches
from process.runtime import metrics
from tests.extender import slots

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
        self.evicted, self.error = [], None

    async def get(self, resource, name, namespace):
        del resource, namespace
        if name not in self.pods:
            raise errors.NotFound(404)
        return self.pods[name]

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
    world.controller.follow(pods)
    pods.put(store.Meta("ns/c", "uid-c", 1), record)
    assert len(world.controller._queue) == 0
    pods.put(store.Meta("ns/b", "uid-b", 2), world.seen("b", 200.0))
    assert len(world.controller._queue) == 1
