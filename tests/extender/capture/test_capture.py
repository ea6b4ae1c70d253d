"""Capture as a transaction: faults and deaths at every write, late writes, changes by others."""

import asyncio
import itertools
import json

import pytest

from api import names, resources
from api.koordinator import scheduling
from api.kubernetes import extender as wire
from extender.plugins.reservation import tracker
from extender.settings import BindSettings
from extender.state import claims
from extender.state.reservations import reservation_claims
from extender.verbs import bind
from kube.client import errors
from kube.informers import store
from process.runtime import clock

UID = "uid-of-r"
IDENT = claims.reservation(UID)
FIRST, SECOND, DELETE = "annotations", "status", "delete"
FENCE = "fence"


class Killed(BaseException):
    """The process ends here."""


FAULTS = {
    **dict.fromkeys(("killed before", "killed after"), Killed()),
    **dict.fromkeys(("answer lost", "late", "lost", "always"), errors.Unreachable("no answer")),
    "not sent": errors.NotSent("no connection"),
    "refused": errors.Forbidden(403, message="not allowed"),
}


def merged(old, patch):
    """Return what a merge patch makes of a value."""
    if not isinstance(patch, dict):
        return patch
    base = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            base.pop(key, None)
        else:
            base[key] = merged(base.get(key), value)
    return base


class Server:
    """Pods and Reservations with versions, and a fault at a chosen step."""

    def __init__(self):
        self.version = 100
        self.objects = {}
        self.fault = ("", "")
        self.late = []
        self.log = []
        self.before = {}
        self.after = {}

    def put(self, key, body):
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = json.loads(json.dumps(body))
        return self.objects[key]

    def fenced(self, guard):
        self.guard = guard
        return self

    async def get(self, resource, name, namespace=""):
        await asyncio.sleep(0)
        found = self.objects.get((resource.plural, name))
        if found is None:
            raise errors.NotFound(404)
        return json.loads(json.dumps(found))

    async def patch(self, resource, name, body, *, subresource=""):
        await asyncio.sleep(0)
        fences = not subresource and "resourceVersion" not in body["metadata"]
        step = SECOND if subresource else FENCE if fences else FIRST
        return await self.step(step, lambda: self.commit(resource, name, body))

    async def delete(self, resource, name, namespace, *, uid):
        def remove():
            found = self.objects.get((resource.plural, name))
            if found is None:
                raise errors.NotFound(404)
            if found["metadata"]["uid"] != uid:
                raise errors.Conflict(409)
            del self.objects[resource.plural, name]

        return await self.step(DELETE, remove)

    async def step(self, step, write):
        self.log.append(step)
        meanwhile = self.before.pop(step, None)
        if meanwhile:
            meanwhile()
        at, kind = self.fault
        if at != step:
            written = write()
            self.after.pop(step, lambda: None)()
            return written
        if kind != "always":
            self.fault = ("", "")
        if kind == "late":
            self.late.append(write)
        elif kind in ("killed after", "answer lost"):
            write()
        raise FAULTS[kind]

    def commit(self, resource, name, body):
        found = self.objects.get((resource.plural, name))
        if found is None:
            raise errors.NotFound(404)
        for key in ("uid", "resourceVersion"):
            wanted = body["metadata"].get(key)
            if wanted and wanted != found["metadata"][key]:
                raise errors.Conflict(409, message=key)
        return json.loads(json.dumps(self.put((resource.plural, name), merged(found, body))))

    def arrive(self):
        """Let what is late arrive; return what became of it."""
        outcomes = []
        for write in self.late:
            try:
                write()
            except errors.KubeError as error:
                outcomes.append(type(error).__name__)
            else:
                outcomes.append("written")
        self.late.clear()
        return outcomes


class World:
    """A picture with two nodes, a server, and a binder between them."""

    def __init__(self, picture, make):
        self.picture, self.make = picture, make
        self.server, self.store, self.clock = Server(), store.Store(), clock.ManualClock()
        self.shown = store.Store()
        self.shown.listen(lambda change: picture.books.reservations.watched(change.old, change.new))
        self.numbers = itertools.count(1)
        self.binder = self.started()
        picture.add(make.node("n1"), make.node("n2"))

    def started(self):
        p = self.picture
        parts = bind.Parts(
            p.books,
            p.pipeline,
            self.server,
            self.store,
            p.projector,
            self.clock,
            p.switches,
            reserved=self.shown,
        )
        return bind.Binder(parts, BindSettings(), new_id=lambda: f"attempt-{next(self.numbers)}")

    def restart(self):
        """Forget everything that only the process knew."""
        for claim in self.picture.cluster.claims_on("n1") + self.picture.cluster.claims_on("n2"):
            self.picture.books.reservations.forget(claim.id)
        self.binder = self.started()

    def reserve(self, uid=UID, generation=1, **status):
        template = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}
        owners = [{"labelSelector": {"matchLabels": {"job": "x"}}}]
        body = {
            "metadata": {
                "name": "r",
                "uid": uid,
                "generation": generation,
                "creationTimestamp": "2026-07-01T12:00:00Z",
            },
            "spec": {"template": {"spec": template}, "owners": owners},
            "status": status,
        }
        return self.server.put((resources.RESERVATIONS.plural, "r"), body)

    def stand_in(self, name="s", uid="uid-s", cpu="4", notes=None):
        raw = self.make.pod(name, uid=uid, requests={"cpu": cpu})
        raw["metadata"]["labels"] = {names.LABEL_STAND_IN: "r"}
        notes = {
            names.ANNOTATION_STAND_IN_NAME: "r",
            names.ANNOTATION_STAND_IN_UID: UID,
            names.ANNOTATION_STAND_IN_GENERATION: "1",
            **(notes or {}),
        }
        raw["metadata"]["annotations"] = notes
        raw = self.server.put((resources.PODS.plural, name), raw)
        self.picture.add(raw)
        meta = store.Meta(f"default/{name}", uid, int(raw["metadata"]["resourceVersion"]))
        self.store.put(meta, self.picture.record(raw))

    async def bind(self, node="n1", name="s", uid="uid-s"):
        return await self.binder.bind(wire.BindingArgs(name, "default", uid, node), lambda: True)

    @property
    def reservation(self):
        return self.server.objects.get((resources.RESERVATIONS.plural, "r"))

    def node(self):
        found = self.reservation
        return (found or {}).get("status", {}).get("nodeName", "")

    def counted(self):
        held = self.picture.cluster.claim(IDENT)
        return held.node if held else ""

    def usable(self):
        return tracker.usable(self.picture.cluster.claim(IDENT))

    def is_there(self):
        return (resources.PODS.plural, "s") in self.server.objects


@pytest.fixture
def world(picture, make):
    made = World(picture, make)
    yield made
    assert not picture.books.assumptions


async def test_the_reservation_gets_the_node_and_its_stand_in_goes(world):
    world.reserve()
    world.stand_in()
    answer = await world.bind()
    assert answer.startswith("captured: Reservation r now holds node n1")
    assert world.server.log == [FIRST, SECOND, DELETE]
    assert not world.is_there()
    status = world.reservation["status"]
    assert (status["phase"], status["nodeName"]) == ("Available", "n1")
    assert status["allocatable"] == {"cpu": "4"}
    kinds = [(one["type"], one["status"], one["reason"]) for one in status["conditions"]]
    assert kinds == [("Scheduled", "True", "Scheduled"), ("Ready", "True", "Available")]
    assert world.counted() == "n1"


async def test_owners_may_use_it_once_its_status_is_answered_before_the_watch_shows_it(world):
    world.reserve()
    world.stand_in()
    before = []
    world.server.before[SECOND] = lambda: before.append(world.usable())
    world.server.before[DELETE] = lambda: before.append(world.usable())
    await world.bind()
    assert before == [False, True]


def over(world, *uids, cpu="1"):
    """The stand-in of a Reservation that is placed over running pods."""
    world.stand_in(cpu=cpu, notes={names.ANNOTATION_STAND_IN_PODS: ",".join(uids)})


def runs(world, name, cpu="3", node="n1"):
    raw = world.make.pod(name, uid=f"uid-{name}", requests={"cpu": cpu}, node=node)
    world.picture.add(raw)
    return raw


async def test_over_a_running_pod_it_waits_and_keeps_only_what_that_pod_does_not_hold(world):
    world.reserve()
    pod = runs(world, "old")
    over(world, "uid-old")
    assert (await world.bind()).startswith("captured")
    status = world.reservation["status"]
    assert (status["phase"], status["nodeName"]) == ("Waiting", "n1")
    assert status["allocatable"] == {"cpu": "4"}
    assert status["allocated"] == {"cpu": "3"}
    owner = {"namespace": "default", "name": "old", "uid": "uid-old"}
    assert status["currentOwners"] == [owner]
    assert status["conditions"][1]["reason"] == "Waiting"
    assert "default/old" in status["conditions"][1]["message"]
    assert kept(world) == 1000
    world.picture.add({**pod, "status": {**pod["status"], "phase": "Succeeded"}})
    assert kept(world) == 4000


def kept(world):
    """What the Reservation keeps of n1 from pods that come."""
    info = world.picture.cluster.view().node(0)
    (one,) = tracker.node(info)[1].kept
    assert one.owners == ""
    return one.held.kept()["cpu"]


CHANGED = {
    "has ended": ({}, ["uid-gone"], "1"),
    "runs elsewhere": ({"node": "n2"}, ["uid-old"], "1"),
    "holds less": ({"cpu": "2"}, ["uid-old"], "1"),
    "one of two has ended": ({}, ["uid-old", "uid-gone"], "1"),
}


@pytest.mark.parametrize(("pod", "uids", "cpu"), CHANGED.values(), ids=CHANGED)
async def test_over_pods_that_have_changed_it_is_not_placed(world, pod, uids, cpu):
    world.reserve()
    runs(world, "old", **pod)
    over(world, *uids, cpu=cpu)
    answer = await world.bind()
    assert "have changed" in answer
    assert world.node() == world.counted() == ""
    assert world.server.log == []


async def test_what_one_pod_holds_is_promised_to_one_reservation(world):
    world.reserve()
    runs(world, "old")
    over(world, "uid-old")
    await world.bind()
    world.reserve(uid="uid-other")
    notes = {names.ANNOTATION_STAND_IN_UID: "uid-other", names.ANNOTATION_STAND_IN_PODS: "uid-old"}
    world.stand_in("t", "uid-t", cpu="1", notes=notes)
    assert "Reservation r waits for one of them" in await world.bind(name="t", uid="uid-t")


PLACED = {
    "answer lost": (SECOND, "answer lost"),
    "stand-in not deleted": (DELETE, "lost"),
    "stand-in deleted, answer lost": (DELETE, "answer lost"),
}


@pytest.mark.parametrize("fault", PLACED.values(), ids=PLACED)
async def test_what_is_written_counts_whatever_was_answered(world, fault):
    world.reserve()
    world.stand_in()
    world.server.fault = fault
    assert "captured" in await world.bind()
    assert world.node() == world.counted() == "n1"


UNPLACED = {
    f"{kind}, {step}": (step, kind)
    for step in (FIRST, SECOND)
    for kind in ("lost", "not sent", "refused", "late")
} | {"answer lost, annotations": (FIRST, "answer lost")}


@pytest.mark.parametrize("fault", UNPLACED.values(), ids=UNPLACED)
async def test_what_is_not_written_holds_nothing_and_the_next_call_places_it(world, fault):
    world.reserve()
    world.stand_in()
    world.server.fault = fault
    answer = await world.bind()
    assert "was not placed" in answer
    assert world.node() == world.counted() == ""
    assert world.is_there()
    assert "captured" in await world.bind("n2")
    # Late writes of the first attempt change nothing any more.
    assert set(world.server.arrive()) <= {"Conflict"}
    assert world.node() == world.counted() == "n2"


@pytest.mark.parametrize("how", ["swept", "retried"])
async def test_capacity_is_held_until_it_is_known_whether_the_status_was_written(world, how):
    world.reserve()
    world.stand_in()
    world.server.fault = (SECOND, "late")
    world.server.before[FENCE] = lambda: setattr(world.server, "fault", (FENCE, "always"))
    assert "is not known" in await world.bind()
    assert world.counted() == "n1"
    assert "is not known" in await world.bind("n2")
    assert world.counted() == "n1"
    world.server.fault = ("", "")
    if how == "retried":
        assert "captured" in await world.bind("n2")
        assert set(world.server.arrive()) == {"Conflict"}
        assert world.node() == world.counted() == "n2"
        return
    await world.binder.captures.sweep_once()
    assert world.counted() == ""
    assert set(world.server.arrive()) == {"Conflict"}
    assert world.node() == ""


DEATHS = [
    (step, when) for step in (FIRST, SECOND, DELETE) for when in ("killed before", "killed after")
]


@pytest.mark.parametrize("fault", DEATHS, ids=lambda fault: " ".join(fault))
async def test_a_death_between_any_two_writes_is_made_good_by_the_next_call(world, fault):
    world.reserve()
    world.stand_in()
    world.server.fault = fault
    with pytest.raises(Killed):
        await world.bind()
    world.restart()
    placed = world.node()
    assert placed == ("n1" if fault in (DEATHS[3], DEATHS[4], DEATHS[5]) else "")
    answer = await world.bind("n2")
    if placed:
        assert "no pod was bound" in answer or "stand-in is gone" in answer
        assert world.node() == "n1"
    else:
        assert "captured" in answer
        assert world.node() == world.counted() == "n2"
    assert not world.is_there()


def deleted(world):
    del world.server.objects[resources.RESERVATIONS.plural, "r"]


def changed(world):
    world.server.put((resources.RESERVATIONS.plural, "r"), dict(world.reservation))


def another(world):
    world.reserve("another-uid")


def elsewhere(world):
    world.reserve(phase="Available", nodeName="n2", allocatable={"cpu": "4"})


MEANWHILE = {
    "changed": (changed, "captured", "n1"),
    "deleted": (deleted, "gone", ""),
    "replaced": (another, "is gone", ""),
    "placed by another process": (elsewhere, "is on node n2 already", "n2"),
}


@pytest.mark.parametrize("step", [FIRST, SECOND])
@pytest.mark.parametrize(("change", "text", "node"), MEANWHILE.values(), ids=MEANWHILE)
async def test_what_others_write_meanwhile_counts(world, step, change, text, node):
    world.reserve()
    world.stand_in()
    world.server.before[step] = lambda: change(world)
    answer = await world.bind()
    if change is deleted:
        assert "was not placed" in answer
        assert "gone" in await world.bind()
    else:
        assert text in answer
    assert world.node() == node
    assert not world.is_there()
    assert world.counted() == ("n1" if node == "n1" else "")


ENDED = {
    "gone": (None, "is gone"),
    "another of its name": ({"uid": "other"}, "is gone"),
    "placed": ({"nodeName": "n2", "phase": "Available"}, "is on node n2 already"),
    "failed": ({"phase": "Failed"}, "has ended: Failed"),
    "changed": ({"generation": 2}, "was changed since"),
}


@pytest.mark.parametrize(("given", "text"), ENDED.values(), ids=ENDED)
async def test_a_stand_in_that_is_of_no_use_is_removed_and_nothing_is_written(world, given, text):
    if given is not None:
        world.reserve(**given)
    world.stand_in()
    assert text in await world.bind()
    assert world.server.log == [DELETE]
    assert world.counted() == ""


async def test_of_two_stand_ins_one_places_the_reservation(world):
    world.reserve()
    world.stand_in()
    world.stand_in("t", "uid-t")
    both = await asyncio.gather(world.bind(), world.bind("n2", "t", "uid-t"))
    assert sum("captured" in answer for answer in both) == 1
    assert world.node() == world.counted()


async def test_what_does_not_fit_is_refused_before_any_write(world):
    world.reserve()
    world.stand_in()
    assert "node n9 is not known" in await world.bind("n9")
    assert world.server.log == []


async def test_a_write_that_comes_too_late_after_the_check_is_held_back(world):
    world.reserve()
    world.stand_in()
    assert "captured" in await world.bind()
    await world.clock.advance(6)
    with pytest.raises(errors.Deposed):
        world.server.guard.check()


def shows(world):
    """The watch shows the Reservation as it is."""
    raw = world.reservation
    claim = reservation_claims.claim(scheduling.read_reservation(raw), world.picture.projector)
    meta = raw["metadata"]
    world.shown.put(store.Meta("r", meta["uid"], int(meta["resourceVersion"])), claim)


def ends(world):
    """The Reservation is deleted, and the watch says so."""
    shows(world)
    deleted(world)
    world.server.version += 1
    world.shown.remove("r", world.server.version)


def ends_unseen(world):
    """The watch is interrupted, and the list after it holds no Reservation."""
    deleted(world)
    world.server.version += 1
    world.shown.finish((), world.server.version)


def expires(world):
    """The Reservation expires at once, and the watch shows it so."""
    world.reserve(phase="Failed", nodeName="n1", allocatable={"cpu": "4"})
    shows(world)


@pytest.mark.parametrize("end", [ends, ends_unseen, expires])
@pytest.mark.parametrize("step", [SECOND, DELETE], ids=["before its answer", "after it"])
async def test_what_has_ended_when_its_placing_is_answered_keeps_nothing(world, step, end):
    world.reserve()
    world.stand_in()
    world.server.after[step] = lambda: end(world)
    assert "captured" in await world.bind()
    await world.binder.captures.sweep_once()
    assert world.counted() == ""


async def test_what_the_watch_has_not_reached_counts_and_then_what_it_shows(world):
    world.reserve()
    shows(world)
    world.stand_in()
    assert "captured" in await world.bind()
    await world.binder.captures.sweep_once()
    assert world.counted() == "n1"
    shows(world)
    await world.binder.captures.sweep_once()
    assert world.counted() == "n1"
    world.picture.books.expire(world.clock.now() + 3600)
    assert world.counted() == "n1"
    ends(world)
    assert world.counted() == ""
