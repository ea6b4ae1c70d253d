"""`koord drain` on a simulated cluster, of nodes with pods that terminate already."""

import argparse
import asyncio

import pytest

from api import names, resources
from cli.commands import drain
from cli.rebalancing import live_cluster
from kube.client import errors
from process.runtime import clock as clocks
from process.runtime import supervise
from tests.cli.rebalancing import idle_cluster

# Each test has an API server of its own, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(90)
it = idle_cluster.it


class Ahead(clocks.SystemClock):
    """A clock on which everything that happens has happened ten minutes ago."""

    def now(self):
        return super().now() + 600.0


class Watched(live_cluster.LiveCluster):
    """Says once the command has looked at the cluster after its plan."""

    looks = 0

    def __init__(self, *given):
        super().__init__(*given)
        self.follows = asyncio.Event()

    def picture(self):
        self.looks += 1
        if self.looks > 3:
            self.follows.set()
        return super().picture()


class Unreachable:
    """A client that cannot read single pods."""

    def __init__(self, kube):
        self._kube, self.asked = kube, 0

    def __getattr__(self, name):
        return getattr(self._kube, name)

    async def get(self, resource, *given):
        if resource is not resources.PODS:
            return await self._kube.get(resource, *given)
        self.asked += 1
        raise errors.Unreachable("no route to host")


async def run(it, *words, clock=None, meanwhile=None, ttl=900.0, kube=None):
    """Drain n1, and do something once the command follows it."""
    parser = argparse.ArgumentParser()
    drain.add_arguments(parser)
    chosen = parser.parse_args(["n1", *words, "--kubeconfig", str(it.kubeconfig)])
    async with supervise.Supervisor("drain") as tasks:
        live = Watched(it.kube, clocks.SystemClock(), names.NAMESPACE)

        async def end():
            if meanwhile is not None:
                await live.follows.wait()
                await meanwhile()

        clock = clock or clocks.SystemClock()
        draining = drain.Drain(chosen, kube or it.kube, clock, live, tasks)
        code, _ = await asyncio.gather(draining.run(ttl), end())
        return code


async def leave(it, *pods, finalizers=()):
    """Delete pods, so that they terminate."""
    for name in pods:
        if finalizers:
            body = {"metadata": {"finalizers": list(finalizers)}}
            await it.kube.patch(resources.PODS, name, body, namespace="default")
        await it.kube.delete(resources.PODS, name, "default", grace_seconds=30)


async def gone(it, *pods):
    for name in pods:
        await it.kube.delete(resources.PODS, name, "default", grace_seconds=0)


async def released(it, name):
    """What holds a pod lets go of it, and it ends."""
    body = {"metadata": {"finalizers": None}}
    await it.kube.patch(resources.PODS, name, body, namespace="default")
    await gone(it, name)


async def test_a_preview_says_which_pods_are_leaving_already(it, capsys):
    await leave(it, "web-1")
    assert await run(it, "--dry-run") == 0
    first, moves, leaving = capsys.readouterr().out.splitlines()
    assert (first, moves) == ("Node n1: 1 pod moves.", "  default/web-0 to n2")
    assert leaving.startswith("  default/web-1 is leaving already: it has ")


async def test_a_node_is_empty_once_pods_have_moved_and_others_have_left(it, capsys):
    await it.lease(drain.LEASE)
    await leave(it, "web-1")

    async def moved_and_gone():
        await it.ended("Succeeded", among=1)
        await gone(it, "web-1")

    assert await run(it, "--yes", meanwhile=moved_and_gone) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "[########################] 1 of 1 pod has moved; "
        "1 of 1 pod that was leaving already has ended"
    )


async def test_a_node_whose_pods_all_leave_is_cordoned_and_needs_no_descheduler(it, capsys):
    await leave(it, "web-0", "web-1")
    assert await run(it) == 1
    assert "nothing was done: pass --yes" in capsys.readouterr().out
    assert not await it.is_cordoned("n1")
    assert await run(it, "--yes", meanwhile=lambda: gone(it, "web-0", "web-1")) == 0
    assert await it.is_cordoned("n1")
    assert await it.jobs() == []
    assert "2 of 2 pods that were leaving already" in capsys.readouterr().out.splitlines()[-1]


async def test_of_a_cordoned_node_nothing_is_asked(it):
    await leave(it, "web-0", "web-1")
    body = {"spec": {"unschedulable": True}}
    await it.kube.patch(resources.NODES, "n1", body)
    assert await run(it, meanwhile=lambda: gone(it, "web-0", "web-1")) == 0


async def test_a_pod_that_terminates_for_ever_is_named_with_what_holds_it(it, capsys):
    await leave(it, "web-0", finalizers=["example.com/backup"])
    await leave(it, "web-1")
    assert await run(it, "--yes", clock=Ahead(), ttl=0.0) == 1
    *_, first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("default/web-0 is still terminating, its grace period ended ")
    assert first.endswith("it stays until its finalizers are removed, example.com/backup")
    assert second.endswith("it has no finalizers, the kubelet of node n1 has not ended it")


async def test_a_drain_goes_on_where_it_cannot_read_what_holds_a_pod(it, capsys):
    await leave(it, "web-0", finalizers=["example.com/backup"])
    await gone(it, "web-1")

    kube, end = Unreachable(it.kube), lambda: released(it, "web-0")
    assert await run(it, "--yes", clock=Ahead(), meanwhile=end, kube=kube) == 0
    assert kube.asked > 1, "until it can be read"
    assert "is still terminating" not in capsys.readouterr().out


async def test_what_holds_a_pod_for_too_long_is_said_once_while_it_is_waited_for(it, capsys):
    await leave(it, "web-0", finalizers=["example.com/backup"])
    await gone(it, "web-1")

    assert await run(it, "--yes", clock=Ahead(), meanwhile=lambda: released(it, "web-0")) == 0
    assert capsys.readouterr().out.count("its finalizers are removed, example.com/backup") == 1


async def test_a_pod_that_left_before_its_job_began_has_left(it, capsys):
    await it.lease(drain.LEASE)

    async def missed():
        await leave(it, "web-0", "web-1")
        await it.ended("Failed", reason="MissingPod", message="is being deleted")
        await gone(it, "web-0", "web-1")

    assert await run(it, "--yes", meanwhile=missed) == 0
    assert "2 of 2 pods that were leaving already" in capsys.readouterr().out.splitlines()[-1]


async def test_what_failed_in_an_earlier_drain_is_not_held_against_this_one(it, capsys):
    await it.lease(drain.LEASE)

    async def failed():
        await it.ended("Failed", reason="Timeout", message="took too long")

    assert await run(it, "--yes", meanwhile=failed) == 1
    await gone(it, "web-0")
    capsys.readouterr()

    async def moved():
        await it.ended("Succeeded", among=3)

    assert await run(it, "--yes", meanwhile=moved) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "[########################] 1 of 1 pod has moved"
    )


async def test_what_an_earlier_drain_has_moved_does_not_count(it, capsys):
    """Its jobs may stay for hours, for limits per time."""
    await it.lease(drain.LEASE)
    assert await run(it, "--yes", meanwhile=lambda: it.ended("Succeeded")) == 0
    await gone(it, "web-0", "web-1")
    owner = await it.kube.get(resources.REPLICA_SETS, "web", "default")
    await it.pod("web-2", "n1", {"name": "web", "uid": owner["metadata"]["uid"]})
    capsys.readouterr()
    assert await run(it, "--yes", meanwhile=lambda: it.ended("Succeeded", among=3)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "[########################] 1 of 1 pod has moved"
    )
