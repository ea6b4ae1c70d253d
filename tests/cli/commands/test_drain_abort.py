"""`koord drain --abort` on a simulated cluster: what ends, what goes on, and what it says."""

import argparse

import pytest

from api import names, resources
from cli.commands import drain
from process.runtime import clock as clocks
from process.runtime import supervise
from tests.cli.rebalancing import idle_cluster

# Each test has an API server of its own, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(90)
JOBS = idle_cluster.JOBS
it = idle_cluster.it


class Hurried(clocks.SystemClock):
    """A clock by which a second passes whenever somebody waits; `meanwhile` happens then."""

    def __init__(self, meanwhile=None):
        self.seconds, self.meanwhile = 0.0, meanwhile

    def monotonic(self):
        return self.seconds

    async def sleep(self, seconds):
        self.seconds += seconds
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()


class Overtaken:
    """A client before whose first write somebody else writes."""

    def __init__(self, kube, before):
        self._kube, self._before = kube, before

    def __getattr__(self, name):
        return getattr(self._kube, name)

    async def patch(self, *given, **named):
        before, self._before = self._before, None
        if before is not None:
            await before()
        return await self._kube.patch(*given, **named)


async def run(it, *words, clock=None, kube=None):
    parser = argparse.ArgumentParser()
    drain.add_arguments(parser)
    chosen = parser.parse_args(["n1", *words, "--kubeconfig", str(it.kubeconfig)])
    if "--abort" not in words:
        return await drain.drained(chosen)
    async with supervise.Supervisor("drain") as tasks:
        clock = clock or clocks.SystemClock()
        return await drain.Drain(chosen, kube or it.kube, clock, None, tasks).aborted()


async def begun(it, *reasons, group=""):
    """Begin to drain a node; bring the evictions of its jobs so far."""
    await it.lease(drain.LEASE)
    await run(it, "--yes", "--no-wait")
    found = sorted((await it.jobs()), key=lambda job: job["spec"]["podRef"]["name"])
    for job, reason in zip(found, reasons, strict=True):
        if group:
            notes = {"metadata": {"annotations": {names.ANNOTATION_MIGRATION_GROUP: group}}}
            await it.kube.patch(JOBS, job["metadata"]["name"], notes)
        await eviction(it, job, reason)
    return found


async def eviction(it, job, reason):
    told = {"type": "Eviction", "status": "False", "reason": reason, "message": ""}
    body = {"status": {"phase": "Running", "conditions": [told] if reason else []}}
    await it.kube.patch(JOBS, job["metadata"]["name"], body, subresource="status")


async def phases(it):
    return {job["spec"]["podRef"]["name"]: job["status"]["phase"] for job in await it.jobs()}


async def test_jobs_whose_evictions_were_only_refused_end(it, capsys):
    await begun(it, "FailedEvict", "FailedEvict")
    assert await run(it, "--abort") == 0
    assert await phases(it) == {"web-0": "Aborted", "web-1": "Aborted"}
    assert capsys.readouterr().out.splitlines()[-1] == "2 jobs are aborted, node n1 is uncordoned"
    assert not await it.is_cordoned("n1")


async def test_a_job_whose_pod_leaves_goes_on_though_its_status_says_that_it_was_refused(
    it, capsys
):
    await begun(it, "FailedEvict", "")
    await it.kube.delete(resources.PODS, "web-0", "default", grace_seconds=30)
    assert await run(it, "--abort") == 0
    assert await phases(it) == {"web-0": "Running", "web-1": "Aborted"}
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "1 move goes on, since its pod is leaving already: default/web-0",
        "1 job is aborted, node n1 is uncordoned",
    ]


async def test_a_group_goes_on_of_which_a_pod_leaves_and_the_output_says_so(it, capsys):
    await begun(it, "Evicting", "FailedEvict", group="default/train@1")
    assert await run(it, "--abort") == 0
    assert await phases(it) == {"web-0": "Running", "web-1": "Running"}
    goes_on, ended = capsys.readouterr().out.splitlines()[-2:]
    assert goes_on == (
        "2 moves go on, since a pod of gang default/train is leaving already, which moves as a "
        "whole: default/web-0, default/web-1"
    )
    assert ended == "0 jobs are aborted, node n1 is uncordoned"


async def test_a_group_ends_of_which_an_eviction_was_only_refused(it):
    await begun(it, "FailedEvict", "", group="default/train@1")
    assert await run(it, "--abort") == 0
    assert await phases(it) == {"web-0": "Aborted", "web-1": "Aborted"}


async def test_an_eviction_that_was_announced_is_waited_for(it):
    first, _ = await begun(it, "EvictionBegun", "EvictionBegun")
    clock = Hurried(lambda: eviction(it, first, "Evicting"))
    assert await run(it, "--abort", clock=clock) == 0
    assert await phases(it) == {"web-0": "Running", "web-1": "Aborted"}
    assert clock.seconds == 5.0


async def test_a_job_that_changes_meanwhile_is_judged_again(it):
    first, _ = await begun(it, "FailedEvict", "FailedEvict")
    kube = Overtaken(it.kube, lambda: eviction(it, first, "Evicting"))
    assert await run(it, "--abort", clock=Hurried(), kube=kube) == 0
    assert await phases(it) == {"web-0": "Running", "web-1": "Aborted"}


async def test_the_jobs_of_a_gang_are_a_group_of_this_drain_alone(it):
    await it.lease(drain.LEASE)
    for name in ("web-0", "web-1"):
        labels = {
            "pod-group.scheduling.sigs.k8s.io/name": "train",
            "pod-group.scheduling.sigs.k8s.io/min-available": "2",
        }
        body = {"metadata": {"labels": labels}}
        await it.kube.patch(resources.PODS, name, body, namespace="default")
    assert await run(it, "--yes", "--no-wait") == 0
    notes = [job["metadata"]["annotations"] for job in await it.jobs()]
    groups = {one[names.ANNOTATION_MIGRATION_GROUP] for one in notes}
    assert len(groups) == 1
    assert groups.pop().startswith("default/train@")
