"""Pods by API server, scheduler, kubelet and NRI: what their first instruction reads.

The agent is that of the chart, in a pod of its own. `test_runtime` has the other values.
"""

from tests.planes import raw
from tests.planes.node import node_agents, node_cluster, node_standing

FILES = (
    *("cpu/cpu.shares", "cpu/cpu.cfs_quota_us", "memory/memory.limit_in_bytes"),
    *("cpuset/cpuset.cpus", "cpu/cpu.cfs_burst_us"),
)
SAYING = f"echo born $(cat {' '.join(f'/sys/fs/cgroup/{one}' for one in FILES)}); sleep 100000"
BATCH = {"cpu": "30m", "memory": "16Mi"}
ONLINE = {"cpu": "300m", "memory": "32Mi"}
# What it requests is not lent, and two batch pods need most of what is.
LITTLE = {"cpu": "10m", "memory": "16Mi"}


async def test_the_first_instruction_reads_what_the_agent_sets(cluster, standing, enforcing):
    await cluster.strategy(enable=False)
    await cluster.strategy("cpu-burst", policy="auto")
    bursts = standing.bursts()

    async def may_burst():
        return node_standing.values(cluster, bursts) == bursts

    await raw.eventually(may_burst, node_cluster.PATIENCE)
    started = await answers(cluster, enforcing)
    made = {
        "born-batch": {
            "labels": node_cluster.ENABLE,
            "resources": {"requests": BATCH, "limits": BATCH},
        },
        "born-online": {
            "labels": node_standing.ONLINE,
            "resources": {"requests": LITTLE, "limits": ONLINE},
            "priorityClassName": "koord-prod",
        },
    }
    for name, spec in made.items():
        await cluster.create(name, command=SAYING, **spec)
    try:
        found = {name: await cluster.running(name) for name in made}
        said = {name: await born(cluster, one) for name, one in found.items()}
    finally:
        for name in made:
            await cluster.remove(name)
        await cluster.strategy("cpu-burst", policy="none")
    every = _range(standing.cpus)
    assert said == {
        # Batch pods begin with the cpus of the cgroup above.
        "born-batch": f"30 3000 {16 << 20} {every} 0",
        "born-online": f"10 30000 {32 << 20} {_range(standing.cpus[:-1])} 30000",
    }
    assert await answers(cluster, enforcing) > started


def _range(cpus):
    return str(cpus[0]) if len(cpus) == 1 else f"{cpus[0]}-{cpus[-1]}"


async def born(cluster, pod):
    """What the first instruction of a pod has said, once its line is in the log."""

    async def says():
        return cluster.node.pod_log(pod, "main").strip()

    line = await raw.eventually(says, node_cluster.PATIENCE)
    return line.removeprefix("born ")


async def answers(cluster, agent):
    """How many containers have waited until the agent had written."""
    name = "koord_agent_nri_answers_total"
    return await node_agents.figure(cluster, agent, name, event="start", result="adjusted")
