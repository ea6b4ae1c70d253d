"""Two pods of one workload move: none takes the place that is kept for the other one."""

import pytest

from api import names
from descheduler.migration import stores, turns
from descheduler.model import object_projection
from kube.informers import store
from process.runtime.clock import ManualClock
from tests.descheduler.migration.api_double import JOBS, KEPT
from tests.descheduler.migration.test_stale_views import TOGETHER, World


@pytest.fixture
def world():
    """Two jobs of one workload whose evictions are announced; that of `a` is opened and seen."""
    made = World(controller="web")
    announced(made)
    made.process.reconcile("a")
    assert made.opened("a")
    made.process.deliver()
    return made


def announced(world):
    for name in ("a", "b"):
        world.scheduled(name)
        world.process.reconcile(name)
        world.process.deliver()
        assert world.eviction(name) == "EvictionBegun"


def evicted(world):
    return [name for name, _ in world.api.evictions]


def steps(world, name, count=4):
    """Let a job go on as far as it can."""
    for _ in range(count):
        world.process.reconcile(name)
        world.process.deliver()


def test_the_second_pod_leaves_once_the_place_of_the_first_is_taken(world):
    steps(world, "b")
    steps(world, "a")
    steps(world, "b")
    assert evicted(world) == ["a"]
    assert not world.opened("b")
    assert world.process.reconcile("b").message == "the pod of a leaves first"
    world.place(world.held("a"), "Succeeded")
    world.process.deliver()
    steps(world, "b")
    assert evicted(world) == ["a", "b"]


def test_an_opening_that_the_watch_does_not_show_yet_counts():
    world = World(controller="web")
    announced(world)
    world.process.reconcile("a")
    world.process.reconcile("b")
    assert (world.opened("a"), world.opened("b")) == (True, False)


async def test_an_opening_that_no_watch_ever_shows_holds_nobody_up_for_ever():
    world = World(controller="web")
    announced(world)
    world.process.reconcile("a")
    world.process.kept.late.clear()
    await world.clock.advance(11.0)
    world.process.reconcile("b")
    assert world.opened("b")


def test_a_place_is_closed_again_where_the_eviction_is_refused(world):
    world.api.refuses_evictions = True
    world.process.reconcile("a")
    assert not world.opened("a")
    assert world.eviction("a") == "FailedEvict"
    world.api.refuses_evictions = False
    world.process.deliver()
    steps(world, "b")
    assert evicted(world) == ["b"]


@pytest.mark.parametrize(
    "end",
    [
        lambda world: world.abort("a"),
        lambda world: world.api._patch(JOBS, "a", {"spec": {"paused": True}}),
        lambda world: world.api._delete(JOBS, "a"),
        lambda world: world.api._delete(KEPT, world.held("a")),
        lambda world: world.place(world.held("a"), "Failed"),
    ],
    ids=["aborted", "paused", "deleted", "place gone", "place failed"],
)
def test_the_second_pod_does_not_wait_for_a_first_that_does_not_leave(world, end):
    end(world)
    world.process.deliver()
    steps(world, "b")
    assert evicted(world) == ["b"]


def test_the_turn_is_known_after_a_restart(world):
    restarted = type(world.process)(world.api, world.clock)
    restarted.reconcile("b")
    restarted.deliver()
    restarted.reconcile("b")
    assert not world.opened("b")
    assert not world.api.evictions


@pytest.mark.parametrize(("controller", "notes"), [("", {}), ("web", TOGETHER)])
def test_workloads_and_groups_do_not_wait(controller, notes):
    world = World(controller=controller, **notes)
    for name in ("a", "b"):
        world.scheduled(name)
    for _ in range(4):
        for name in ("a", "b"):
            world.process.reconcile(name)
        world.process.deliver()
    assert sorted(evicted(world)) == ["a", "b"]


def test_a_pod_that_waits_for_its_turn_is_not_announced_to_leave():
    world = World(controller="web")
    world.announced("a")
    world.scheduled("b")
    assert world.process.reconcile("b").message == "the pod of a leaves first"
    assert world.eviction("b") == ""


async def test_workloads_that_move_no_more_are_forgotten():
    """A leader sees many of them, and the uid of each but once."""
    clock = ManualClock()
    taken = turns.Turns(stores.Stores(*(store.Store() for _ in range(4))), clock)
    for number in range(100):
        notes = {names.ANNOTATION_MIGRATION_WORKLOAD: f"uid-{number}"}
        metadata = {"name": f"j{number}", "uid": f"j{number}", "annotations": notes}
        metadata |= {"resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
        spec = {"podRef": {"namespace": "default", "name": f"p{number}"}}
        assert taken.take(object_projection.job({"metadata": metadata, "spec": spec}))
        await clock.advance(1.0)
    assert len(taken._opened) <= 11
