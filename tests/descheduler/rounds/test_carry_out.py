"""What a plan becomes on an API server, and what is left when that refuses."""

import dataclasses

import pytest

from api import names, resources
from descheduler.configuration import by_profile
from descheduler.framework import protocols
from descheduler.framework.planning import round_plan
from descheduler.migration.plan import facts
from descheduler.receipts import receipt
from descheduler.rounds import awaited, carry_out, round_metrics
from kube.client import errors
from process.runtime import metrics, token_bucket
from tests import builders as objects
from tests.descheduler import builders

DEFAULTS = by_profile.ByProfile(
    facts.Defaults(), {"even": facts.Defaults("EvictDirectly", 60, "Delete")}
)


class Events:
    """Remembers events."""

    def __init__(self):
        self.told = []

    def event(self, regarding, kind, reason, note, action=""):
        self.told.append((regarding.name, reason, action, note))
        return True


@dataclasses.dataclass
class Carrying:
    parts: carry_out.Parts
    events: Events
    registry: metrics.Registry

    async def apply(self, plan, seen, receipts=None):
        return await carry_out.CarryOut(self.parts).apply(plan, seen, receipts or {})

    def moved(self, result):
        labels = {"profile": "even", "plugin": "LowNodeLoad", "result": result}
        return self.registry.value("koord_descheduler_moves_total", labels)


@pytest.fixture
async def carrying(world):
    async with world.client("koord-descheduler") as api:
        events, registry = Events(), metrics.Registry()
        pace = token_bucket.ClockedBucket(world.clock, 50.0, 100)
        parts = carry_out.Parts(
            *(api, events, world.clock, pace, DEFAULTS),
            *(awaited.Awaited(), round_metrics.RoundMetrics(registry), lambda: True, "me"),
        )
        yield Carrying(parts, events, registry)


def move(pod, evictor="MigrationController", **given):
    suggestion = protocols.Suggestion(pod, "LowNodeLoad", "hot", protocols.Purpose.BALANCE)
    return round_plan.Move(suggestion, "even", evictor, **given)


async def running(world, name="web-0"):
    await world.create(resources.PODS, objects.a_pod(name, node="n1"))
    stored = world.stored(resources.PODS, name)
    return builders.pod(name, "n1", uid=stored["metadata"]["uid"])


async def test_a_move_becomes_one_job_however_often_it_is_tried(world, carrying):
    pod = await running(world)
    who = {"profile": "even", "plugin": "LowNodeLoad", "purpose": "Balance"}
    told = receipt.Receipt("moves", **who, pod=pod.key, source="n1", at=builders.NOW)
    plan, seen = round_plan.RoundPlan(moves=(move(pod),)), builders.picture_of(pods=[pod])
    assert await carrying.apply(plan, seen, {pod.uid: told}) == 1
    assert await carrying.apply(plan, seen, {pod.uid: told}) == 1
    (job,) = world.stored(resources.POD_MIGRATION_JOBS)
    notes = job["metadata"]["annotations"]
    assert job["spec"]["podRef"]["uid"] == pod.uid
    assert (job["spec"]["mode"], job["spec"]["ttl"]) == ("EvictDirectly", "1m0s")
    assert job["metadata"]["labels"] == {names.LABEL_EVICT_POLICY: "Delete"}
    assert notes[names.ANNOTATION_MIGRATION_PROFILE] == "even"
    assert notes[names.ANNOTATION_JOB_CREATED_BY] == "me"
    assert '"LowNodeLoad"' in notes[names.ANNOTATION_MIGRATION_RECEIPT]
    (waiting,) = carrying.parts.waits.joined({}, 0.0).values()
    assert waiting.pod_key == pod.key


async def test_what_is_only_reported_changes_nothing(world, carrying):
    pod = await running(world)
    plan = round_plan.RoundPlan(moves=(move(pod, dry_run=True),), dry_run=True)
    assert await carrying.apply(plan, builders.picture_of(pods=[pod])) == 0
    assert world.stored(resources.POD_MIGRATION_JOBS) == []
    assert carrying.moved("dry_run") == 1


async def test_the_default_evictor_evicts_without_a_job(world, carrying):
    pod, gone = await running(world), builders.pod("gone", "n1", uid="gone")
    plan = round_plan.RoundPlan(moves=(move(gone, "DefaultEvictor"), move(pod, "DefaultEvictor")))
    assert await carrying.apply(plan, builders.picture_of(pods=[pod, gone])) == 1
    assert world.stored(resources.POD_MIGRATION_JOBS) == []
    assert world.stored(resources.PODS, "web-0")["metadata"].get("deletionTimestamp")
    note = 'Pod evicted from node "n1" by the reason "hot"'
    assert carrying.events.told == [("web-0", "Descheduled", "Migrating", note)]
    assert (carrying.moved("created"), carrying.moved("failed")) == (1, 1)


async def test_a_disruption_budget_keeps_a_pod(world, carrying):
    pod = await running(world)
    spec = {"selector": {}, "minAvailable": 1}
    budget = {"metadata": {"name": "all", "namespace": "default"}, "spec": spec}
    await world.create(resources.POD_DISRUPTION_BUDGETS, budget)
    plan = round_plan.RoundPlan(moves=(move(pod, "DefaultEvictor"),))
    assert await carrying.apply(plan, builders.picture_of(pods=[pod])) == 0
    assert not world.stored(resources.PODS, "web-0")["metadata"].get("deletionTimestamp")


async def test_nodes_are_cordoned_and_pods_annotated_before_anything_moves(world, carrying):
    pod = await running(world)
    await world.create(resources.NODES, objects.a_node("n1"), objects.a_node("n2"))
    nodes = [
        builders.node(name, uid=world.stored(resources.NODES, name)["metadata"]["uid"], **given)
        for name, given in (("n1", {}), ("n2", {"schedulable": False}))
    ]
    cost = {names.ANNOTATION_POD_DELETION_COST: "3"}
    plan = round_plan.RoundPlan(
        cordons=tuple(protocols.Cordon(n, "CustomPriority", "drain") for n in ("n1", "n2", "n3")),
        annotations={pod.uid: cost, "unknown": cost},
    )
    seen = builders.picture_of(nodes, [pod])
    assert await carrying.apply(plan, seen) == 0
    assert world.stored(resources.NODES, "n1")["spec"]["unschedulable"] is True
    assert "unschedulable" not in world.stored(resources.NODES, "n2")["spec"]
    assert world.stored(resources.PODS, "web-0")["metadata"]["annotations"] == cost
    version = world.plane.objects.version
    annotated = builders.pod("web-0", "n1", uid=pod.uid, annotations=cost)
    again = round_plan.RoundPlan(annotations={pod.uid: cost})
    await carrying.apply(again, builders.picture_of(nodes, [annotated]))
    assert world.plane.objects.version == version, "what stands there is not written again"


async def test_a_pod_of_the_same_name_is_not_annotated(world, carrying):
    await running(world)
    old = builders.pod("web-0", "n1", uid="of-before")
    plan = round_plan.RoundPlan(annotations={old.uid: {names.ANNOTATION_POD_DELETION_COST: "3"}})
    await carrying.apply(plan, builders.picture_of(pods=[old]))
    assert "annotations" not in world.stored(resources.PODS, "web-0")["metadata"]


@pytest.mark.parametrize("evictor", ["MigrationController", "DefaultEvictor"])
async def test_the_rest_of_a_round_stays_once_the_switch_is_thrown(world, carrying, evictor):
    pods = [await running(world, f"web-{at}") for at in range(3)]
    asked = iter([True, False, True])
    carrying.parts = dataclasses.replace(carrying.parts, enforces=lambda: next(asked))
    plan = round_plan.RoundPlan(moves=tuple(move(pod, evictor) for pod in pods))
    assert await carrying.apply(plan, builders.picture_of(pods=pods)) == 1
    stored = world.stored(resources.PODS)
    leaving = [one for one in stored if one["metadata"].get("deletionTimestamp")]
    assert len(leaving) + len(world.stored(resources.POD_MIGRATION_JOBS)) == 1
    assert (carrying.moved("created"), carrying.moved("failed")) == (1, None)


async def test_nothing_is_cordoned_or_annotated_once_the_switch_is_thrown(world, carrying):
    pod = await running(world)
    await world.create(resources.NODES, objects.a_node("n1"))
    uid = world.stored(resources.NODES, "n1")["metadata"]["uid"]
    seen = builders.picture_of([builders.node("n1", uid=uid)], [pod])
    carrying.parts = dataclasses.replace(carrying.parts, enforces=lambda: False)
    version = world.plane.objects.version
    cordons = (protocols.Cordon("n1", "CustomPriority", "drain"),)
    await carrying.apply(round_plan.RoundPlan(cordons=cordons), seen)
    notes = {pod.uid: {names.ANNOTATION_POD_DELETION_COST: "3"}}
    await carrying.apply(round_plan.RoundPlan(annotations=notes), seen)
    assert world.plane.objects.version == version


class Refusing:
    """An API server that refuses every write."""

    def __init__(self, error):
        self.error = error
        self.calls = 0

    async def create(self, *_args, **_options):
        self.calls += 1
        raise self.error


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (errors.Unreachable("no route"), 1),
        (errors.ServerFailure(500, "InternalError", "etcd is away"), 1),
        (errors.Deposed("the lease has ended"), 1),
        (errors.Forbidden(403, "Forbidden", "not yours"), 3),
        (errors.Malformed("no JSON"), 3),
    ],
    ids=["away", "failing", "deposed", "forbidden", "malformed"],
)
async def test_nothing_more_is_tried_where_nothing_more_can_be_written(carrying, error, calls):
    api = Refusing(error)
    carrying.parts = dataclasses.replace(carrying.parts, api=api)
    pods = [builders.pod(f"web-{i}", "n1") for i in range(3)]
    plan = round_plan.RoundPlan(moves=tuple(map(move, pods)))
    assert await carrying.apply(plan, builders.picture_of(pods=pods)) == 0
    assert api.calls == calls
    assert carrying.moved("failed") == calls
