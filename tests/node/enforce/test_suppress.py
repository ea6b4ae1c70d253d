"""Best effort on the real node gives way to online work, and has its cpus back afterwards."""

import pytest_asyncio

from tests.planes import raw
from tests.planes.node import node_agents, node_cluster, node_groups, node_standing

PERIOD = 100_000
PERCENT = 80
SPIKE = 0.4
BURN = "while :; do :; done"


def quota(cluster):
    """The quota of all best effort in cores; None where it has none."""
    found = node_groups.figure(cluster.class_group("cpu"), "cpu.cfs_quota_us")
    return None if found < 0 else found / PERIOD


async def quota_is(cluster, predicate):
    """Wait until the quota satisfies a predicate; returns it."""

    async def check():
        found = quota(cluster)
        return (found,) if predicate(found) else None

    return (await raw.eventually(check, node_cluster.PATIENCE))[0]


async def rate(cluster, folder, seconds):
    """Cores that a group works with until it has worked so long, and the largest quota."""
    begin, used = cluster.now(), node_groups.figure(folder, "cpuacct.usage")
    largest = 0.0

    async def worked():
        nonlocal largest
        largest = max(largest, quota(cluster) or 0.0)
        return node_groups.figure(folder, "cpuacct.usage") - used > seconds * 1e9

    await raw.eventually(worked, node_cluster.PATIENCE)
    spent = (node_groups.figure(folder, "cpuacct.usage") - used) / 1e9
    return spent / (cluster.now() - begin), largest


@pytest_asyncio.fixture(loop_scope="session")
async def greedy(cluster, standing, enforcing):
    """A batch pod that takes all cpus it gets; suppression is off again afterwards."""
    asked = {"cpu": "20m", "memory": "16Mi"}
    await cluster.create(
        "greedy",
        labels=node_cluster.ENABLE,
        command=" & ".join([BURN] * len(standing.cpus)),
        resources={"requests": asked, "limits": asked},
    )
    yield await cluster.running("greedy")
    await cluster.remove("greedy")
    await cluster.strategy(enable=False)


async def test_best_effort_follows_the_online_load(cluster, standing, greedy):
    cores = len(standing.cpus)
    folder = cluster.class_group("cpuacct")
    await cluster.strategy(
        enable=True, cpuSuppressThresholdPercent=PERCENT, cpuSuppressPolicy="cfsQuota"
    )
    await quota_is(cluster, lambda found: found and found > cores * PERCENT / 200)
    # It grows by steps; that takes seconds.
    used, largest = await rate(cluster, folder, 3.0)
    assert used <= 1.2 * largest
    free = quota(cluster)
    print(f"quota {free:.2f} of {cores} cores, {used:.2f} used")
    await cluster.create(
        "spike",
        command=BURN,
        labels=node_standing.ONLINE,
        priorityClassName="koord-prod",
        resources={"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}},
    )
    try:
        spike = cluster.pod_group("cpuacct", await cluster.running("spike"))

        async def works():
            # Other work on this machine may keep the spike from the cpu for a while.
            found, _ = await rate(cluster, spike, 0.5)
            return found if found > SPIKE else None

        online = await raw.eventually(works, node_cluster.PATIENCE)
        held = await quota_is(cluster, lambda found: found and found < free - online / 2)
        used, largest = await rate(cluster, folder, 0.5)
        print(f"{held:.2f} while online work uses {online:.2f} more, {used:.2f} used")
        assert used <= 1.2 * largest
    finally:
        await cluster.remove("spike")
    again = await quota_is(cluster, lambda found: found and found > held + SPIKE / 2)
    print(f"{again:.2f} when it has gone")
    await cluster.strategy(enable=False)
    await quota_is(cluster, lambda found: found is None)


async def test_the_other_policy_takes_cpus_instead_of_time(cluster, standing, enforcing, greedy):
    """With two cpus in all nothing can be taken: best effort always keeps two."""
    await cluster.strategy(**node_cluster.HOLD)
    await quota_is(cluster, lambda found: found is not None)
    await cluster.strategy(**node_cluster.HOLD | {"cpuSuppressPolicy": "cpuset"})
    await quota_is(cluster, lambda found: found is None)
    group = f"kubepods/besteffort/pod{greedy['metadata']['uid']}"
    path = cluster.node.group("cpuset", group, node_standing.container_id(greedy, "main"))

    async def two():
        return len(set(cpus(path))) == 2

    await raw.eventually(two, node_cluster.PATIENCE)
    said = await node_agents.told(
        cluster,
        enforcing,
        "/debug/audit",
        lambda found: found["strategies"]["cpu-suppress"]["figures"].get("allowed-milli"),
    )
    print(said["decision"])


def cpus(folder):
    """The cpus of a group."""
    text = (folder / "cpuset.cpus").read_text().strip()
    return node_standing.parsed(text) if text else ()
