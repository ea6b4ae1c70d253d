"""One key of one ConfigMap puts the real node back, and gives it back to the agent again."""

import pytest_asyncio

from api import names, resources
from tests.planes import raw
from tests.planes.node import node_agents, node_cluster, node_groups, node_standing, node_tree

SWITCHES = resources.CONFIG_MAPS.path(names.NAMESPACE, names.CONFIG_MAP_SWITCHES)


@pytest_asyncio.fixture(loop_scope="session")
async def held(cluster, standing, enforcing):
    """The agent holds the class back and has set every limit; the switches are normal again."""
    await cluster.strategy("cpu-burst", policy="auto")
    await cluster.strategy(**node_cluster.HOLD)
    expected = {**standing.cpusets(), **standing.bursts()}

    async def stands():
        quota = node_groups.figure(cluster.class_group("cpu"), "cpu.cfs_quota_us")
        return quota > 0 and node_standing.values(cluster, expected) == expected

    await raw.eventually(stands, node_cluster.PATIENCE)
    yield stands
    await cluster.api.patch(SWITCHES, {"data": {"agent": None}})
    await node_standing.let_go(cluster, standing)


async def test_the_switch_puts_the_node_back_and_gives_it_back(cluster, standing, enforcing, held):
    def differing():
        return node_tree.differences(standing.before, node_tree.snapshot(cluster.node))

    many = len(differing())
    assert many >= 12
    begin = cluster.now()
    await cluster.api.patch(SWITCHES, {"data": {"agent": "off"}})

    async def back():
        return not differing()

    await raw.eventually(back, node_cluster.PATIENCE)
    print(f"{many} files were put back within {cluster.now() - begin:.2f} s of the switch")
    mode = await node_agents.figure(
        cluster, enforcing, "koord_agent_strategy_mode", strategy="cpu-suppress"
    )
    assert mode == 0
    # The node is back before the next look says why.
    why = {"switched off by the live switch agent"}
    await node_agents.told(
        cluster,
        enforcing,
        "/debug/audit",
        lambda said: {one["reason"] for one in said["strategies"].values()} == why,
    )
    assert differing() == {}
    await cluster.api.patch(SWITCHES, {"data": {"agent": None}})
    await raw.eventually(held, node_cluster.PATIENCE)
    card = await node_agents.told(cluster, enforcing, "/scorecard", lambda found: found["days"])
    summary = card["days"][0]["summary"]
    print(f"scorecard of the day: {summary}")
    assert summary["written"] >= many
    # The agent observed first, and its successor goes on with the same day.
    assert summary["wouldWrite"] > 0
