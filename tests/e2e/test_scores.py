"""Scores that are computed over columns equal those that the real kube-scheduler logs."""

import asyncio
import os

from api.kubernetes import scheduler_config
from domain.scoring import configuration, profile
from tests.domain.scoring import clusters
from tests.planes import scored

# Of a seed each; KOORD_SCORES=N compares more of them.
CLUSTERS = int(os.environ.get("KOORD_SCORES", "8"))
PODS = 6
CONSTANT = {profile.VOLUMES, profile.DEVICES, profile.POD_AFFINITY}
KIND = {"apiVersion": scheduler_config.API_VERSION, "kind": scheduler_config.KIND}


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
    nodes, workloads, placed = await scored.create(api, draw, minor)
    config = {**KIND, "profiles": scored.profiles(draw, 3), "percentageOfNodesToScore": 100}
    await quiet.binaries.start_scheduler(config, binary=talkative)
    surroundings = configuration.Surroundings(minor, "")
    compared = set()
    on_nodes = [(pod, pod["spec"]["nodeName"]) for pod in placed]
    for number in range(PODS):
        scheduler = f"s{draw.randrange(3)}"
        body = scored.pod(draw, f"new-{seed}-{number}", minor, scheduler)
        pending = await api.post(scored.pods(body), body)
        ended = await api.wait_until(
            f"{scored.pods(body)}/{body['metadata']['name']}", scored.decided
        )
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
    await scored.clear(api)
    return compared


async def test_every_score_is_the_schedulers(quiet, quiet_api, talkative):
    compared = set()
    for seed in range(CLUSTERS):
        compared |= await compare(quiet, quiet_api, seed, talkative)
    assert compared == {
        *(profile.FIT, profile.BALANCE, profile.TAINTS),
        *(profile.NODE_AFFINITY, profile.IMAGES, profile.SPREAD),
    }
