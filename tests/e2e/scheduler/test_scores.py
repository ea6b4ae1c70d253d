"""Scores that are computed over columns equal those that the real kube-scheduler logs."""

import asyncio
import json
import os
import pathlib

from api.kubernetes import scheduler_config
from domain.scoring import configuration, profile
from tests.domain.scoring import clusters
from tests.e2e import binaries as builds
from tests.planes.scheduler import scored

# Of a seed each; KOORD_SCORES=N compares more of them, KOORD_SCORES_FILE keeps them as test cases.
CLUSTERS = int(os.environ.get("KOORD_SCORES", "8"))
KEPT = os.environ.get("KOORD_SCORES_FILE")
SCHEDULER = "s0"
PODS = 6
CONSTANT = {profile.VOLUMES, profile.DEVICES, profile.POD_AFFINITY}
KIND = {"apiVersion": scheduler_config.API_VERSION, "kind": scheduler_config.KIND}


def assert_equal(found, step):
    """Compare every score of one pod; return the plug-ins that were compared."""
    points, totals = step["scores"], step["total"]
    if not totals:
        return set()
    names = sorted(totals)
    scores = found.scores(clusters.read_pod(step["pod"]), names)
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


async def recorded(quiet, api, seed, talkative):
    """Place pods in one random cluster; return what happened as a test case holds it."""
    draw, minor = scored.seeded(seed), quiet.release[1]
    nodes, workloads, placed = await scored.create(api, draw, minor)
    config = {"profiles": scored.profiles(draw, 1)}
    full = {**KIND, **config, "percentageOfNodesToScore": 100}
    await quiet.binaries.start_scheduler(full, binary=talkative)
    steps = []
    for number in range(PODS):
        body = scored.pod(draw, f"new-{seed}-{number}", minor, SCHEDULER)
        pending = await api.post(scored.pods(body), body)
        ended = await api.wait_until(
            f"{scored.pods(body)}/{body['metadata']['name']}", scored.decided
        )
        log = await asyncio.to_thread((quiet.binaries.workdir / "kube-scheduler.log").read_text)
        key = f"{pending['metadata']['namespace']}/{pending['metadata']['name']}"
        points, totals = scored.scores(log, key)
        node = ended["spec"].get("nodeName", "")
        steps.append(
            {"pod": scored.bare(pending), "scores": points, "total": totals, "chosen": node}
        )
    await quiet.binaries.stop_scheduler()
    await scored.clear(api)
    on_nodes = [scored.bare(pod) for pod in placed]
    given = {"nodes": nodes, "objects": workloads, "placed": on_nodes, "config": config}
    return {"version": builds.version(), **given, "steps": steps}


def compare(cluster, minor):
    """Compare every step; return the plug-ins that were compared."""
    surroundings = configuration.Surroundings(minor, "")
    settings = configuration.read(cluster["config"], SCHEDULER, surroundings)
    assert settings.unsupported == ""
    found = clusters.Cluster(settings)
    for node in cluster["nodes"]:
        found.add_node(clusters.read_node(node))
    for workload in cluster["objects"]:
        found.add_workload(workload)
    for pod in cluster["placed"]:
        found.place(clusters.read_pod(pod), pod["spec"]["nodeName"])
    compared = set()
    for step in cluster["steps"]:
        compared |= assert_equal(found, step)
        if step["chosen"]:
            found.place(clusters.read_pod(step["pod"]), step["chosen"])
    return compared


def keep(cluster):
    """Append a test case to the file that the user named."""
    with pathlib.Path(KEPT).open("a") as file:
        file.write(json.dumps(cluster, sort_keys=True, separators=(",", ":")) + "\n")


async def test_every_score_is_the_schedulers(quiet, quiet_api, talkative):
    compared = set()
    for seed in range(CLUSTERS):
        cluster = await recorded(quiet, quiet_api, seed, talkative)
        if KEPT:
            keep(cluster)
        compared |= compare(cluster, quiet.release[1])
    assert compared == {
        *(profile.FIT, profile.BALANCE, profile.TAINTS),
        *(profile.NODE_AFFINITY, profile.IMAGES, profile.SPREAD),
    }
