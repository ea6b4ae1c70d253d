"""The real node is as it was: when the agent is uninstalled, and when it was killed and undone."""

import pytest_asyncio

from tests.planes.node import node_agents, node_standing, node_tree


def test_uninstalled_the_agent_leaves_every_value_as_it_was(standing, uninstalled):
    held = node_tree.differences(standing.before, uninstalled.held)
    left = node_tree.differences(standing.before, uninstalled.after)
    compared = len(standing.before.keys() & uninstalled.after.keys())
    print(f"{len(held)} files differed while it ran, {len(left)} of {compared} after it had gone")
    assert len(held) >= 12
    assert left == {}


@pytest_asyncio.fixture(loop_scope="session")
async def killed(cluster, standing, uninstalled):
    """An agent was killed that had set everything; nobody follows it."""
    agents = node_agents.Agents(cluster, uninstalled.template)
    pod = await agents.start("victim")
    await node_standing.held(cluster, standing)
    node_agents.kill(cluster, pod)
    await agents.phase("victim", "Failed")
    yield agents
    await agents.stop()
    await cluster.strategy(enable=False)


def undo(*more):
    """A change of an agent's pod into one that runs the command."""
    places = ("--cgroup=/host/cgroup", "--state=/var/run/koord-agent")

    def change(spec):
        spec["containers"][0]["args"] = ["agent", "undo", *places, *more]

    return change


async def test_after_a_kill_the_command_puts_everything_back(cluster, standing, killed):
    left = node_tree.differences(standing.before, node_tree.snapshot(cluster.node))
    assert len(left) >= 12
    await killed.create("look", undo("--dry-run"))
    said = cluster.node.pod_log(await killed.phase("look", "Succeeded"), "agent")
    assert said.count("would put back") >= len(left)
    assert node_tree.differences(standing.before, node_tree.snapshot(cluster.node)) == left
    await killed.create("undo", undo())
    said = cluster.node.pod_log(await killed.phase("undo", "Succeeded"), "agent")
    print(f"{len(left)} files were left behind; the command put back {said.count('put back')}")
    assert node_tree.differences(standing.before, node_tree.snapshot(cluster.node)) == {}
    await killed.create("again", undo())
    said = cluster.node.pod_log(await killed.phase("again", "Succeeded"), "agent")
    assert "nothing to put back" in said
