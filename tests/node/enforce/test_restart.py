"""The agent of a real node is killed, restarted in an outage, and upgraded: nothing opens.

Every 100 ms, from before until after, the limits, cpusets and classes are read from the files.
"""

import asyncio
import contextlib
import dataclasses
import pathlib

import pytest_asyncio

from agent.apply import journal
from agent.model import edits
from agent.observe.node import boot
from api import names, resources
from process.runtime import supervise
from tests.planes import raw
from tests.planes.node import node_agents, node_cluster, node_groups, node_standing

SECONDS = 0.1
OUTAGE_SECONDS = 12.0
RESIZED_MILLI = 1100
RESIZED = {"cpu": f"{RESIZED_MILLI}m", "memory": "32Mi"}


@dataclasses.dataclass
class Sampler:
    """Reads files at even distances and keeps every value that was seen."""

    cluster: node_cluster.Cluster
    keys: tuple
    seen: dict = dataclasses.field(default_factory=dict)
    times: list = dataclasses.field(default_factory=list)

    async def run(self):
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            for key, value in node_standing.values(self.cluster, self.keys).items():
                self.seen.setdefault(key, set()).add(value)
            self.times.append(loop.time())
            due += SECONDS
            await asyncio.sleep(max(0.0, due - loop.time()))

    @property
    def longest(self):
        """The longest time between two readings."""
        return max(
            after - before for before, after in zip(self.times, self.times[1:], strict=False)
        )


@contextlib.asynccontextmanager
async def sampled(cluster, keys):
    """Read the files behind these keys all the time."""
    sampler = Sampler(cluster, tuple(keys))
    async with supervise.Supervisor("samples") as supervisor:
        supervisor.start("sample", sampler.run)
        yield sampler


@pytest_asyncio.fixture(loop_scope="session")
async def expected(cluster, standing, enforcing):
    """Everything that has to stand: batch limits, cpusets, bursts; the class is held back."""
    await node_standing.held(cluster, standing)
    batch = {key: text for key, text in standing.batch().items() if key[0] != "cpu-quota"}
    wanted = {**batch, **standing.cpusets(), **standing.bursts()}

    async def stands():
        return node_standing.values(cluster, wanted) == wanted

    await raw.eventually(stands, node_cluster.PATIENCE)
    quota = node_groups.figure(cluster.class_group("cpu"), "cpu.cfs_quota_us")
    assert quota > 0
    yield {**wanted, ("cpu-quota", "kubepods/besteffort"): str(quota)}
    await node_standing.let_go(cluster, standing)


def container_of(pod):
    (status,) = pod["status"]["containerStatuses"]
    return status["containerID"].partition("://")[2]


async def restarted(cluster, pod, before):
    """Wait until the kubelet has started another container of a pod; nobody else can be asked."""
    folder = cluster.pod_group("cpu", pod)

    async def other():
        for found in folder.iterdir():
            if found.is_dir() and found.name not in before:
                pids = (found / "cgroup.procs").read_text().split()
                if pids:
                    return found.name
        return None

    return await raw.eventually(other, node_cluster.PATIENCE)


async def here(cluster, pod):
    """Wait until the agent of a pod answers."""

    async def answers():
        return await node_agents.page(cluster, pod, "/healthz")

    await raw.eventually(answers, node_cluster.PATIENCE)


async def test_killed_in_an_outage_everything_stands_and_the_next_one_goes_on(
    cluster, node_plane, standing, expected
):
    pod = await cluster.pod_of("agent")
    folder = cluster.pod_group("cpu", pod)
    groups = {one.name for one in folder.iterdir() if one.is_dir()}
    async with sampled(cluster, expected) as sampler:
        node_plane.binaries.pause("kube-apiserver")
        try:
            node_agents.kill(cluster, pod)
            await restarted(cluster, pod, groups)
            await here(cluster, pod)
            await asyncio.sleep(OUTAGE_SECONDS)
            gap = await node_agents.figure(cluster, pod, "koord_agent_unattended_seconds")
            age = await node_agents.figure(
                cluster, pod, "koord_agent_last_known_age_seconds", kind="nodeslo"
            )
        finally:
            node_plane.binaries.resume("kube-apiserver")
    count = len(sampler.times)
    print(f"{count} readings of {len(expected)} files, the longest {sampler.longest:.2f} s apart")
    print(f"nobody was here for {gap:.1f} s; the NodeSLO was {age:.0f} s old")
    assert sampler.seen == {key: {text} for key, text in expected.items()}
    assert count >= OUTAGE_SECONDS / SECONDS / 2
    assert 0 < gap < 30
    found = await cluster.pod_of("agent")
    assert found["metadata"]["uid"] == pod["metadata"]["uid"]


async def test_during_an_outage_the_next_one_restores_what_others_change(
    cluster, node_plane, standing, expected
):
    pod = await cluster.pod_of("agent")
    groups = {one.name for one in cluster.pod_group("cpu", pod).iterdir() if one.is_dir()}
    limit = "memory-limit", standing.group("lent", "main")
    file = cluster.node.group("memory", limit[1], "memory.limit_in_bytes")
    node_plane.binaries.pause("kube-apiserver")
    try:
        node_agents.kill(cluster, pod)
        await restarted(cluster, pod, groups)
        await here(cluster, pod)
        file.write_text(str(2 * int(expected[limit])))

        async def restored():
            return file.read_text().strip() == expected[limit]

        await raw.eventually(restored, 60)
    finally:
        node_plane.binaries.resume("kube-apiserver")
    await cluster.pod_of("agent")

    # For a while the kubelet could have written it, and would say so only later.
    async def settled():
        return previous(cluster, edits.Role.MEMORY_LIMIT, limit[1]) != str(2 * int(expected[limit]))

    await raw.eventually(settled, node_cluster.PATIENCE)


def previous(cluster, role, group):
    """What the agent's journal says has to be put back one day."""
    folder = pathlib.Path(f"/proc/{cluster.node.pid}/root/run/koord-agent")
    kept = journal.Journal(folder, boot.boot_id("/proc"))
    kept.load()
    return kept.get(role, group).previous


async def test_an_upgrade_opens_nothing(cluster, enforcing, expected):
    before = await cluster.pod_of("agent")
    async with sampled(cluster, expected) as sampler:
        after = await cluster.configure(
            *node_cluster.ENFORCING, "agent.podAnnotations.koord-test/upgraded=once"
        )
        await asyncio.sleep(5)
    print(f"{len(sampler.times)} readings, the longest {sampler.longest:.2f} s apart")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert sampler.seen == {key: {text} for key, text in expected.items()}


async def test_a_resize_is_what_an_uninstallation_puts_back(cluster, standing, expected):
    """The kubelet writes the new quota; the agent holds its own, and keeps the new one in mind."""
    path = f"{node_cluster.PODS}/bound/resize"
    container = {"name": "main", "resources": {"requests": RESIZED, "limits": RESIZED}}
    await cluster.api.patch(
        path, {"spec": {"containers": [container]}}, "application/strategic-merge-patch+json"
    )

    def resized(found):
        (status,) = found["status"]["containerStatuses"]
        return status.get("resources", {}).get("limits", {}).get("cpu") == RESIZED["cpu"]

    await cluster.api.wait_until(f"{node_cluster.PODS}/bound", resized, node_cluster.PATIENCE)
    quotas = {key: text for key, text in expected.items() if key[0] == "cpu-quota"}
    bound = {key: text for key, text in quotas.items() if "besteffort" not in key[1]}
    assert set(bound.values()) == {"-1"}

    async def held():
        return node_standing.values(cluster, bound) == bound

    await raw.eventually(held, node_cluster.PATIENCE)
    # From now on this is how the node is without an agent; what follows compares with it.
    for group in (standing.group("bound"), standing.group("bound", "main")):
        quota, shares = RESIZED_MILLI * 100, RESIZED_MILLI * 1024 // 1000
        assert standing.before["cpu", group, "cpu.cfs_quota_us"] == b"100000\n"
        standing.before["cpu", group, "cpu.cfs_quota_us"] = f"{quota}\n".encode()
        standing.before["cpu", group, "cpu.shares"] = f"{shares}\n".encode()


async def test_the_agent_may_ask_for_its_own_daemon_set_only(cluster):
    rules = await cluster.api.get(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{names.NAMESPACE}/roles/koord-agent"
    )
    found = [rule for rule in rules["rules"] if resources.DAEMON_SETS.plural in rule["resources"]]
    assert [(rule["verbs"], rule["resourceNames"]) for rule in found] == [
        (["get"], ["koord-agent"])
    ]
