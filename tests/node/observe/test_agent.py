"""The agent on the real node: what it measures, and what it writes and puts back."""

import json

import pytest
import pytest_asyncio

from api import names, resources
from api.wire import quantity
from tests.planes import raw
from tests.planes.node import node_cluster, node_groups, node_reports

MEBIBYTE = 1 << 20
QUOTA = "cpu.cfs_quota_us"


@pytest_asyncio.fixture(loop_scope="session")
async def worker(cluster):
    """A pod that uses a fifth of a core and 48 MiB, and its agent's figure of it."""
    fill = "dd if=/dev/zero of=/memory/held bs=1M count=48"
    volume = {"name": "memory", "emptyDir": {"medium": "Memory"}}
    limits = {"cpu": "200m", "memory": "128Mi"}
    await cluster.create(
        "worker",
        command=f"{fill}; while :; do :; done",
        resources={"requests": limits, "limits": limits},
        container={"volumeMounts": [{"name": "memory", "mountPath": "/memory"}]},
        volumes=[volume],
    )
    yield await cluster.running("worker")
    await cluster.remove("worker")


def usage(status, name):
    """What the report says of a pod: cores and bytes."""
    for pod in status.get("podsMetric") or ():
        if pod["name"] == name:
            found = pod["podUsage"]["resources"]
            return quantity.milli(found["cpu"]) / 1000, quantity.whole(found["memory"])
    return None


async def test_the_report_agrees_with_the_control_groups(cluster, worker):
    group = cluster.pod_group("cpuacct", worker)
    await cluster.metric(
        lambda status: (found := usage(status, "worker")) and found[1] > 40 * MEBIBYTE
    )
    status, rates = await node_reports.beside(cluster, {"worker": group})
    rate = rates["worker"]
    cores, held = usage(status, "worker")
    # The two windows differ by a second, and a busy machine gives a pod now more, now less.
    assert cores == pytest.approx(rate, rel=0.5)
    assert cores <= 0.25
    memory = node_groups.fields(cluster.pod_group("memory", worker), "memory.stat")
    # Memory volumes are never swapped out, so the kernel counts them as unevictable.
    kinds = ("inactive_anon", "active_anon", "unevictable")
    assert held == pytest.approx(sum(memory[f"total_{kind}"] for kind in kinds), rel=0.2)
    assert 48 * MEBIBYTE <= held <= 64 * MEBIBYTE


async def test_the_report_adds_up(cluster, worker):
    status = (await cluster.metric(lambda found: usage(found, "worker")))["status"]
    whole = status["nodeMetric"]["nodeUsage"]["resources"]
    pods = sum(
        quantity.whole(pod["podUsage"]["resources"]["memory"]) for pod in status["podsMetric"]
    )
    assert 0 < pods < quantity.whole(whole["memory"])
    assert {pod["name"].rsplit("-", 1)[0] for pod in status["podsMetric"]} >= {"koord-agent"}


@pytest_asyncio.fixture(loop_scope="session")
async def greedy(cluster):
    """A best-effort pod that takes what it gets."""
    await cluster.create("greedy", command="while :; do :; done")
    yield await cluster.running("greedy")
    await cluster.remove("greedy")


async def quota_is(cluster, predicate):
    folder = cluster.class_group("cpu")

    async def check():
        return predicate(node_groups.figure(folder, QUOTA))

    await raw.eventually(check, node_cluster.PATIENCE)


async def test_best_effort_work_is_held_back_and_let_go(cluster, greedy):
    group = cluster.pod_group("cpuacct", greedy)
    # Nothing is left for best effort under a threshold of zero, so it gets the least there is.
    await cluster.strategy(enable=True, cpuSuppressThresholdPercent=0, cpuSuppressPolicy="cfsQuota")
    await quota_is(cluster, lambda quota: 0 < quota <= 10_000)
    quota = node_groups.figure(cluster.class_group("cpu"), QUOTA)
    begin, used = cluster.now(), node_groups.figure(group, "cpuacct.usage")
    first = (await cluster.metric())["status"]["updateTime"]
    await cluster.metric(lambda status: status["updateTime"] >= cluster.later(first, 4))
    rate = (node_groups.figure(group, "cpuacct.usage") - used) / 1e9 / (cluster.now() - begin)
    assert rate < 2 * quota / 100_000
    await cluster.strategy(enable=False)
    await quota_is(cluster, lambda quota: quota == -1)


def told(node):
    """What the agent says on its Node of each strategy."""
    text = (node or {}).get("metadata", {}).get("annotations", {}).get(names.ANNOTATION_STRATEGIES)
    return json.loads(text) if text else {}


async def test_the_node_says_what_it_can_keep(cluster):
    path = resources.NODES.path(name=node_cluster.NODE)
    found = await cluster.api.wait_until(path, told, node_cluster.PATIENCE)
    for name, row in told(found).items():
        print(f"{name}: {row['verdict']}, {row['how']}")
    kept = {name for name, row in told(found).items() if row["verdict"] == "works"}
    assert {"cpu-suppress", "cpuset", "cpu-burst", "batch-resources"} <= kept
    # Cookies of others take what no agent of the chart has.
    assert told(found)["core-sched"]["verdict"] == "unavailable"


async def test_nothing_outside_the_node_is_touched(cluster):
    root = node_groups.ROOT / "cpu"
    assert node_groups.figure(root, QUOTA) == -1
    status, said = await cluster.node.command("cat", "/proc/self/cgroup")
    assert status == 0
    assert all(line.endswith(":/") for line in said.splitlines()), said
