"""`koord drain` on a simulated cluster: previews, asks, cordons, creates jobs, follows, aborts."""

import argparse
import asyncio
import contextlib
import io
import json
import sys

import pytest
import pytest_asyncio

from api import names, resources
from api.kubernetes import crds
from api.wire import durations
from cli.commands import drain
from kube.client import access as accesses
from kube.client import client as clients
from process.runtime import clock as clocks
from simulator import cluster
from simulator.processes import credentials
from tests import patience

# Each test has an API server of its own, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(90)
KINDS = {
    *("NodeMetric", "PodMigrationJob", "Reservation", "Device", "ElasticQuota"),
    *("NodeResourceTopology", "PodGroup", "ClusterNetworkTopology"),
}
JOBS = resources.POD_MIGRATION_JOBS


class Cluster:
    """A simulated cluster without controllers of ours, and the command as a person runs it."""

    def __init__(self, plane, kube, kubeconfig):
        self.plane, self.kube, self.kubeconfig = plane, kube, kubeconfig

    async def node(self, name, cpu="8"):
        await self.kube.create(resources.NODES, {"metadata": {"name": name}})
        amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
        status = {"status": {"capacity": amounts, "allocatable": amounts}}
        await self.kube.patch(resources.NODES, name, status, subresource="status")

    async def replicas(self, name, count):
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        spec = {
            "replicas": count,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        }
        body = {"metadata": {"name": name}, "spec": spec}
        made = await self.kube.create(resources.REPLICA_SETS, body, "default")
        return made["metadata"]["uid"]

    async def pod(self, name, node, owner, cpu="2"):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
        body = {
            "metadata": {"name": name, "ownerReferences": [{**reference, **owner}]},
            "spec": {"nodeName": node, "containers": [container]},
        }
        await self.kube.create(resources.PODS, body, "default")

    async def lease(self, seconds_ago=0.0):
        moment = durations.precise_moment(clocks.SystemClock().now() - seconds_ago)
        spec = {"holderIdentity": "d", "leaseDurationSeconds": 15, "renewTime": moment}
        body = {"metadata": {"name": drain.LEASE}, "spec": spec}
        await self.kube.create(resources.LEASES, body, names.NAMESPACE)

    async def run(self, *words):
        parser = argparse.ArgumentParser()
        drain.add_arguments(parser)
        chosen = parser.parse_args([*words, "--kubeconfig", str(self.kubeconfig)])
        return await drain.drained(chosen)

    async def jobs(self):
        return (await self.kube.list(JOBS)).items

    async def ended(self, phase, **status):
        """End every job once, as the descheduler would."""

        jobs = []

        async def look():
            jobs[:] = await self.jobs()

        await patience.until(lambda: len(jobs) == 2, look)
        for job in jobs:
            body = {"status": {"phase": phase, **status}}
            await self.kube.patch(JOBS, job["metadata"]["name"], body, subresource="status")

    async def is_cordoned(self, name):
        found = await self.kube.get(resources.NODES, name)
        return bool(found["spec"].get("unschedulable"))


@pytest_asyncio.fixture
async def it(tmp_path):
    clock = clocks.SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        options = cluster.Options(with_kubelets=False, with_workloads=False)
        plane = await enter(cluster.running(options))
        access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
        kube = await enter(clients.Client(access, clock=clock))
        for definition in crds.definitions():
            if definition["spec"]["names"]["kind"] in KINDS:
                await kube.create(resources.CRDS, definition)
        await kube.create(resources.NAMESPACES, {"metadata": {"name": names.NAMESPACE}})
        login = tmp_path / "kubeconfig"
        login.touch(mode=0o600)
        login.write_text(json.dumps(credentials.kubeconfig(plane.server, plane.ca, plane.token)))
        found = Cluster(plane, kube, login)
        for name in ("n1", "n2"):
            await found.node(name)
        owner = {"name": "web", "uid": await found.replicas("web", 2)}
        for name in ("web-0", "web-1"):
            await found.pod(name, "n1", owner)
        yield found


async def test_a_dry_run_shows_where_pods_would_go_and_changes_nothing(it, capsys):
    assert await it.run("n1", "--dry-run") == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "Node n1: 2 pods move.",
        "  default/web-0 to n2",
        "  default/web-1 to n2",
    ]
    assert "the defaults of the descheduler hold" in said.err
    assert await it.jobs() == []
    assert not await it.is_cordoned("n1")


async def test_pods_leave_by_jobs_that_are_followed_to_their_end(it, capsys):
    await it.lease()
    code, _ = await asyncio.gather(it.run("n1", "--yes"), it.ended("Succeeded"))
    assert code == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "[########################] 2 of 2 pods have moved"
    )
    assert await it.is_cordoned("n1")
    for job in await it.jobs():
        assert job["metadata"]["labels"] == {names.LABEL_DRAIN: "n1"}
        assert job["metadata"]["annotations"][names.ANNOTATION_EVICT_TRIGGER] == "Drain"
        assert job["spec"]["mode"] == "ReservationFirst"
        assert job["spec"]["ttl"] == "15m0s"


async def test_a_pod_that_has_not_moved_is_named_and_the_next_run_tries_it_again(it, capsys):
    await it.lease()
    failed = it.ended("Failed", reason="Timeout", message="took too long")
    code, _ = await asyncio.gather(it.run("n1", "--yes"), failed)
    assert code == 1
    assert "default/web-0 has not moved (Timeout): took too long" in capsys.readouterr().out
    await it.run("n1", "--yes", "--no-wait", "--evict-directly")
    again = [job for job in await it.jobs() if job["spec"]["mode"] == "EvictDirectly"]
    assert len(again) == 2


async def test_run_again_it_finds_the_jobs_that_are_there(it, capsys):
    await it.lease()
    assert await it.run("n1", "--yes", "--no-wait") == 0
    assert await it.run("n1", "--no-wait") == 0
    assert "2 pods are being moved already." in capsys.readouterr().out
    assert len(await it.jobs()) == 2


async def test_an_abort_ends_what_has_not_begun_and_uncordons(it, capsys):
    await it.lease()
    await it.run("n1", "--yes", "--no-wait")
    first, second = sorted(job["metadata"]["name"] for job in await it.jobs())
    evicting = {"type": "Eviction", "status": "False", "reason": "Evicting", "message": ""}
    body = {"status": {"phase": "Running", "conditions": [evicting]}}
    await it.kube.patch(JOBS, first, body, subresource="status")
    assert await it.run("n1", "--abort") == 0
    assert capsys.readouterr().out.splitlines()[-1] == ("1 jobs are aborted, node n1 is uncordoned")
    phases = {job["metadata"]["name"]: job["status"]["phase"] for job in await it.jobs()}
    assert phases == {first: "Running", second: "Aborted"}
    assert not await it.is_cordoned("n1")


@pytest.mark.parametrize(
    ("seconds_ago", "said"),
    [(None, "no descheduler runs"), (3600.0, "no descheduler leads")],
    ids=["none", "an old lease"],
)
async def test_without_a_descheduler_nothing_is_begun(it, capsys, seconds_ago, said):
    if seconds_ago is not None:
        await it.lease(seconds_ago)
    assert await it.run("n1", "--yes") == 1
    assert said in capsys.readouterr().err
    assert await it.jobs() == []
    assert not await it.is_cordoned("n1")


async def test_without_a_terminal_to_ask_at_nothing_is_done(it, capsys, monkeypatch):
    await it.lease()
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert await it.run("n1") == 1
    assert "pass --yes" in capsys.readouterr().out
    assert await it.jobs() == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nowhere",), 1, "there is no node nowhere among 2"),
        (("n", "--dry-run"), 1, "there are n1, n2"),
        (("n1", "--ttl", "soon"), 2, "--ttl"),
    ],
    ids=["unknown", "near", "no time"],
)
async def test_what_cannot_be_meant_is_refused(it, capsys, words, code, said):
    assert await it.run(*words) == code
    assert said in capsys.readouterr().err
