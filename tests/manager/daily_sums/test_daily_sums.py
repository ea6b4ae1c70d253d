"""The daily sums of the manager: what a moment comes to, and how they are kept."""

import msgspec
import pytest

from api import names, resources
from api.kubernetes import core
from domain.daily_sums import sums
from kube.client import client, errors
from kube.informers import shared_store, store
from manager.daily_sums import rates, term
from manager.model import projections
from process.runtime import supervise
from tests import builders

ONLY = {"controllers": ("dailysums",)}


def node(name, lent, cpu="16"):
    raw = builders.a_node(name, cpu=cpu, extra={names.BATCH_CPU: str(lent)})
    return projections.node(msgspec.convert(raw, core.Node))


def report(name, cpu, pods):
    used = [builders.a_pod_metric(pod, space, cpu=c, memory="1Gi") for (space, pod), c in pods]
    return projections.report(builders.a_node_metric(name, cpu=cpu, pods=used))


def pod(**given):
    return rates.team_pod(msgspec.convert(builders.a_pod(**given), core.Pod))


def batch(milli, where="n1"):
    return pod(node=where, requests={names.BATCH_CPU: str(milli)})


def test_a_moment_is_told_by_namespace():
    reports = {
        "n1": report("n1", "9", [(("shop", "web"), "3"), (("data", "etl"), "2")]),
        "n2": None,
    }
    counting = rates.Counting([node("n1", 6000), node("n2", 1000)], reports.get)
    counting.add("shop/web", pod(cpu="8", node="n1"))
    counting.add("shop/unmeasured", pod(cpu="8", node="n1"))
    counting.add("data/etl", batch(6000))
    counting.add("ml/train", batch(3000))
    counting.add("ml/other", batch(500, "n2"))
    counting.add("ml/waits", pod(requests={names.BATCH_CPU: "9000"}))
    found = counting.rates({"ml": 2})
    # On the first node 9 cores are held of 6 that are lent: a third was given back.
    assert found.teams == {
        "shop": sums.Team(left=5.0),
        "data": sums.Team(held=6.0, used=2.0, returned=pytest.approx(2.0)),
        "ml": sums.Team(held=3.5, returned=pytest.approx(1.0), waiting=1.0, evicted=2.0),
    }
    assert found.cluster == sums.Cluster(1.0, 32.0, 7.0, 7.0, 2.0)


def test_pods_that_are_over_hold_nothing():
    assert pod(node="n1", phase="Succeeded") is None
    raw = builders.a_pod(node="n1")
    raw["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
    assert rates.team_pod(msgspec.convert(raw, core.Pod)).disrupted


def kept(world):
    found = world.stored(resources.CONFIG_MAPS, names.CONFIG_MAP_REPORT)
    return sums.read(found["data"]) if found else ()


async def minutes(world, count=8):
    for _ in range(count):
        await world.clock.advance(term.PERIOD_SECONDS)
        await world.quiet()


async def test_the_leader_keeps_them_and_a_successor_goes_on(world) -> None:
    await world.node("a", cpu="8")
    await world.pod("web", "a", "2")
    async with world.manager(**ONLY):
        await minutes(world)
        await world.until(lambda: kept(world))
    (first,) = kept(world)[-1:]
    assert first.cluster.allocatable == pytest.approx(8 * first.cluster.seconds)
    before = sum(day.cluster.seconds for day in kept(world))
    async with world.manager(**ONLY):
        await minutes(world)
        await world.until(lambda: sum(d.cluster.seconds for d in kept(world)) > before)


async def test_where_none_are_kept_yet_it_is_said_at_once_that_they_are(world) -> None:
    async with world.manager(**ONLY):
        await world.until(lambda: world.stored(resources.CONFIG_MAPS, names.CONFIG_MAP_REPORT))
    assert kept(world) == ()


class Over:
    """A fence whose term is over."""

    def remaining(self) -> float:
        return 60.0

    def check(self) -> None:
        raise errors.Deposed("the lease has ended")


async def test_a_lease_that_has_ended_does_not_end_the_process(world) -> None:
    """As after a machine has slept; the elector ends the term, a moment later."""
    watched = (shared_store.SharedStore(), store.Store(), store.Store())
    async with (
        client.Client(world.access, clock=world.clock, user_agent="manager") as api,
        supervise.Supervisor("term") as tasks,
    ):
        keeping = term.DailySums(*watched, names.NAMESPACE, world.clock)
        tasks.start("daily-sums", lambda: keeping.run(api.fenced(Over())))
        await minutes(world)
        assert tasks.tasks == ("daily-sums",)
