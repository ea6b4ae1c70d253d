"""What the agent may do on its node is what it needs, and it puts the node back when it ends.

The agent of the DaemonSet is gone here; each test runs one as a pod of its own, made from the
DaemonSet's template with something taken away.
"""

import pytest
import pytest_asyncio

from tests.planes import raw
from tests.planes.node import node_agents, node_cluster, node_groups

QUOTA = "cpu.cfs_quota_us"
HOLD = node_cluster.HOLD


def quota(cluster):
    return node_groups.figure(cluster.class_group("cpu"), QUOTA)


async def quota_is(cluster, predicate):
    async def check():
        return predicate(quota(cluster))

    await raw.eventually(check, node_cluster.PATIENCE)


@pytest_asyncio.fixture(loop_scope="session")
async def agents(cluster, uninstalled):
    """Agents without probes; all are stopped after the test, which puts the node back."""
    await cluster.strategy(**HOLD)
    running = node_agents.Agents(cluster, uninstalled.template)
    yield running
    await running.stop()
    assert quota(cluster) == -1


async def test_as_shipped_it_holds_back_and_puts_back(cluster, agents):
    await agents.start("shipped")
    await quota_is(cluster, lambda figure: figure > 0)
    await agents.stop()
    assert quota(cluster) == -1
    status, said = await cluster.node.command("ls", "/run/koord-agent")
    assert status == 0, said


def unprivileged(spec):
    spec["containers"][0]["securityContext"] |= {"runAsUser": 65532, "runAsGroup": 65532}


def read_only(spec):
    for mount in spec["containers"][0]["volumeMounts"]:
        if mount["name"] == "cgroup":
            mount["readOnly"] = True
            mount["recursiveReadOnly"] = "Enabled"


def without(name):
    def change(spec):
        mounts = spec["containers"][0]["volumeMounts"]
        spec["containers"][0]["volumeMounts"] = [one for one in mounts if one["name"] != name]
        spec["volumes"] = [one for one in spec["volumes"] if one["name"] != name]

    return change


def without_token(spec):
    spec["serviceAccountName"] = "default"


@pytest.mark.parametrize(
    ("change", "page", "word"),
    [
        pytest.param(unprivileged, "/readyz", "Permission denied", id="not as root"),
        pytest.param(read_only, "/debug/audit", "Read-only file system", id="groups read-only"),
        pytest.param(without("cgroup"), "/readyz", "cgroup", id="without the groups"),
        pytest.param(without("state"), "/readyz", "journal", id="without the journal"),
        pytest.param(without_token, "/readyz", "403", id="with nobody's permissions"),
    ],
)
async def test_taken_away_it_fails_by_name(cluster, agents, change, page, word):
    pod = await agents.start("less", change)
    await agents.tells(pod, page, word)
    assert quota(cluster) == -1


async def test_after_a_kill_the_next_one_puts_back(cluster, agents):
    pod = await agents.start("killed")
    await quota_is(cluster, lambda figure: figure > 0)
    node_agents.kill(cluster, pod)
    await agents.phase("killed", "Failed")
    assert quota(cluster) > 0
    await cluster.strategy(enable=False)
    pod = await agents.start("next")
    await quota_is(cluster, lambda figure: figure == -1)
    await agents.tells(pod, "/debug/audit", "put back")
