"""Scores that are computed over columns equal those that the real kube-scheduler logs."""

import asyncio
import os
import shlex

import pytest
import pytest_asyncio

from api.kubernetes import scheduler_config
from domain.scoring import configuration, profile
from tests.domain.scoring import clusters
from tests.planes import raw, real, scored

# Of a seed each; KOORD_SCORES=N compares more of them.
CLUSTERS = int(os.environ.get("KOORD_SCORES", "8"))
PODS = 6
CONSTANT = {profile.VOLUMES, profile.DEVICES, profile.POD_AFFINITY}
KIND = {"apiVersion": scheduler_config.API_VERSION, "kind": scheduler_config.KIND}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def quiet(control_plane_binaries, tmp_path_factory):
    """A control plane without controllers: owners stand, and nobody deletes what they own."""
    workdir = tmp_path_factory.mktemp("scores") / "state"
    async with real.running(control_plane_binaries, workdir, with_controllers=False) as plane:
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def api(quiet):
    """An administrator, and what pods need before they may be created."""
    async with raw.connected(quiet.server, quiet.ca, quiet.token) as admin:
        overhead = {"podFixed": {"cpu": "10m", "memory": "5Mi"}}
        runtime = {"metadata": {"name": scored.RUNTIME}, "handler": "x", "overhead": overhead}
        await admin.post("/apis/node.k8s.io/v1/runtimeclasses", runtime)
        for namespace in scored.NAMESPACES:
            await admin.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
            await admin.call("POST", path, {"metadata": {"name": "default"}})
        yield admin


@pytest.fixture(scope="module")
def talkative(control_plane_binaries, tmp_path_factory):
    """The scheduler with a log of every score."""
    path = tmp_path_factory.mktemp("program") / "kube-scheduler"
    program = shlex.quote(str(control_plane_binaries / "kube-scheduler"))
    path.write_text(f'#!/bin/sh\nexec {program} --v=10 "$@"\n')
    path.chmod(0o755)
    return str(path)


async def create(api, draw, minor):
    """Create a cluster; return its nodes, workloads and the pods on nodes."""
    nodes = [scored.node(draw, number) for number in range(draw.randint(2, 9))]
    for node in nodes:
        await api.post("/api/v1/nodes", node)
    workloads = []
    for kind in ("Service", "ReplicaSet", "StatefulSet"):
        for app in ("web", "db"):
            if draw.random() < 0.6:
                prefix, plural, body = scored.workload(draw, kind, app)
                await api.post(f"{prefix}/namespaces/default/{plural}", body)
                workloads.append(body)
    placed = []
    for number in range(draw.randint(0, 14)):
        body = scored.pod(draw, f"old-{number}", minor, "s0")
        body["spec"] |= {"nodeName": draw.choice(nodes)["metadata"]["name"]}
        placed.append(await api.post(pods(body), body))
    return nodes, workloads, placed


def pods(body):
    return f"/api/v1/namespaces/{body['metadata']['namespace']}/pods"


async def clear(api):
    """Delete everything again."""
    for namespace in scored.NAMESPACES:
        for prefix, plural in (
            ("/api/v1", "pods"),
            ("/api/v1", "services"),
            ("/apis/apps/v1", "replicasets"),
            ("/apis/apps/v1", "statefulsets"),
        ):
            path = f"{prefix}/namespaces/{namespace}/{plural}"
            for item in (await api.get(path))["items"]:
                name = item["metadata"]["name"]
                if (plural, name) != ("services", "kubernetes"):
                    await api.call("DELETE", f"{path}/{name}", query={"gracePeriodSeconds": "0"})
    for item in (await api.get("/api/v1/nodes"))["items"]:
        await api.delete(f"/api/v1/nodes/{item['metadata']['name']}")


def decided(pod):
    """Whether an attempt to place a pod has ended."""
    if pod is None:
        return False
    conditions = pod.get("status", {}).get("conditions", ())
    return any(one["type"] == "PodScheduled" for one in conditions) or pod["spec"].get("nodeName")


def assert_equal(found, pending, log):
    """Compare every score of one pod; return the plug-ins that were compared."""
    key = f"{pending['metadata']['namespace']}/{pending['metadata']['name']}"
    points, totals = scored.scores(log, key)
    if not totals:
        return set()
    names = sorted(totals)
    scores = found.scores(clusters.read_pod(pending), names)
    due = {}
    for plugin in points[names[0]]:
        figures = [points[name][plugin] for name in names]
        if plugin in CONSTANT:
            assert set(figures) == {0}
        else:
            due[plugin] = figures
    assert {one.plugin: one.weighted.tolist() for one in scores.plugins} == due
    assert scores.total.tolist() == [totals[name] for name in names]
    return set(due)


async def compare(quiet, api, seed, talkative):
    """Place pods in one random cluster and compare; return the plug-ins that were compared."""
    draw, minor = scored.seeded(seed), quiet.release[1]
    nodes, workloads, placed = await create(api, draw, minor)
    config = {**KIND, "profiles": scored.profiles(draw, 3), "percentageOfNodesToScore": 100}
    await quiet.binaries.start_scheduler(config, binary=talkative)
    surroundings = configuration.Surroundings(minor, "")
    compared = set()
    on_nodes = [(pod, pod["spec"]["nodeName"]) for pod in placed]
    for number in range(PODS):
        scheduler = f"s{draw.randrange(3)}"
        body = scored.pod(draw, f"new-{seed}-{number}", minor, scheduler)
        pending = await api.post(pods(body), body)
        ended = await api.wait_until(f"{pods(body)}/{body['metadata']['name']}", decided)
        settings = configuration.read(config, scheduler, surroundings)
        assert settings.unsupported == ""
        found = clusters.Cluster(settings)
        for node in nodes:
            found.add_node(clusters.read_node(node))
        for workload in workloads:
            found.add_workload(workload)
        for pod, name in on_nodes:
            found.place(clusters.read_pod(pod), name)
        log = await asyncio.to_thread((quiet.binaries.workdir / "kube-scheduler.log").read_text)
        compared |= assert_equal(found, pending, log)
        if name := ended["spec"].get("nodeName"):
            on_nodes.append((ended, name))
    await quiet.binaries.stop_scheduler()
    await clear(api)
    return compared


async def test_every_score_is_the_schedulers(quiet, api, talkative):
    compared = set()
    for seed in range(CLUSTERS):
        compared |= await compare(quiet, api, seed, talkative)
    assert compared == {
        *(profile.FIT, profile.BALANCE, profile.TAINTS),
        *(profile.NODE_AFFINITY, profile.IMAGES, profile.SPREAD),
    }
