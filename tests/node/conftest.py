"""One real node for all tests here; skipped unless asked for, obligatory when asked for.

The node is made once and its agent is configured four times: as shipped, observing everything,
enforcing everything, and gone. The tests run in that order.
"""

import dataclasses
import os
import pathlib

import pytest
import pytest_asyncio

from api import names, resources
from deploy.image import build
from tests.e2e import binaries
from tests.planes import real
from tests.planes.node import (
    node,
    node_agents,
    node_cluster,
    node_programs,
    node_shortage,
    node_standing,
    node_tree,
)

SWITCH = "KOORD_NODE"
# The first test also waits for the plane, the node and the image.
TIMEOUT = 600
# Read before the root conftest cleans the environment of each test.
_ASKED = bool(os.environ.get(SWITCH))
ORDER = (
    # They have nodes of their own, which end before that of the others begins.
    *("test_runtime", "test_synchronisation", "test_many_containers", "test_runtime_proxy"),
    *("test_installed",),
    *("test_leftovers", "test_image", "test_pods", "test_agent", "test_topology", "test_in_place"),
    *("test_observing",),
    *(
        "test_limits",
        "test_births",
        "test_report",
        "test_suppress",
        "test_evictions",
        "test_kubelet",
    ),
    *("test_switches", "test_restart", "test_undo", "test_privileges"),
)
"""Every module, as the configuration of the agent goes on."""
DAEMON_SET = resources.DAEMON_SETS.path(names.NAMESPACE, "koord-agent")


def place(item):
    """Where a test of this folder has its turn; others keep their places around them."""
    name = pathlib.Path(item.path).stem
    # Whoever forgets to name a module here has its turn while the agent enforces.
    return ORDER.index(name if name in ORDER else "test_kubelet")


def pytest_collection_modifyitems(items):
    mine = [position for position, item in enumerate(items) if "tests/node/" in item.nodeid]
    ordered = sorted((items[position] for position in mine), key=place)
    for position, item in zip(mine, ordered, strict=True):
        items[position] = item
    for item in items:
        if "tests/node/" not in item.nodeid:
            continue
        item.add_marker(pytest.mark.node)
        item.add_marker(pytest.mark.timeout(TIMEOUT))
        if pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
        if not _ASKED:
            item.add_marker(pytest.mark.skip(reason="needs a real node; run make e2e-node"))


@pytest.fixture(autouse=True)
def _no_leaks():
    """The node is shared by all tests, so its sockets and tasks outlive each of them."""


@pytest.fixture(scope="session")
def programs():
    """What a node is made of, or a skip that says why there can be none."""
    if reason := node_programs.obstacle():
        pytest.skip(f"no real node on this machine: {reason}")
    return node_programs.build(binaries.version())


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def node_plane(programs, tmp_path_factory):
    """A control plane of its own: nodes are watched, and kubelets may change only their node."""
    folder = binaries.build(binaries.version())
    options = {
        "node_lifecycle": True,
        "users": [node.user(node_cluster.NODE)],
        "apiserver_flags": ["--enable-admission-plugins=NodeRestriction"],
    }
    workdir = tmp_path_factory.mktemp("node-plane") / "state"
    async with real.running(folder, workdir, **options) as plane:
        yield plane


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real_node(node_plane, programs, tmp_path_factory):
    """The node, ready for pods."""
    workdir = tmp_path_factory.mktemp("node") / "state"
    async with node.running(node_cluster.NODE, workdir, programs, node_plane) as running:
        yield running


@pytest.fixture(scope="session")
def image():
    """Our image as an archive, built from the Dockerfile."""
    return build.image()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cluster(node_plane, real_node, image, tmp_path_factory):
    """Our processes, the chart installed, and its pods on the node out of the image."""
    await real_node.load(image)
    name = build.reference(image)
    folder = tmp_path_factory.mktemp("system")
    async with node_cluster.running(node_plane, real_node, name, folder) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def observing(cluster):
    """The agent's pod, with every strategy on and nothing allowed."""
    await cluster.strategy(enable=False)
    return await cluster.configure(*node_cluster.OBSERVING)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def standing(cluster, observing):
    """Pods that stand from before the agent may change anything, and the tree as it was then."""
    return await node_standing.start(cluster)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def enforcing(cluster, standing):
    """The agent's pod, with every strategy on that this kernel can do."""
    return await cluster.configure(*node_cluster.ENFORCING)


@dataclasses.dataclass(frozen=True)
class Uninstalled:
    """What was left when the agent's DaemonSet had been deleted."""

    template: dict
    held: dict
    """The tree while the agent ran."""
    after: dict
    """The tree when its pod was gone."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def uninstalled(cluster, standing, enforcing):
    """The DaemonSet is deleted while its agent holds a class back and has set every limit."""
    found = await cluster.api.get(DAEMON_SET)
    await node_standing.held(cluster, standing)
    during = node_tree.snapshot(cluster.node)
    pod = await cluster.pod_of("agent")
    await cluster.api.delete(DAEMON_SET, propagationPolicy="Background")
    path = f"{node_agents.PODS}/{pod['metadata']['name']}"
    await cluster.api.wait_until(path, lambda found: found is None, node_cluster.PATIENCE)
    after = node_tree.snapshot(cluster.node)
    return Uninstalled(found["spec"]["template"], during, after)


@pytest_asyncio.fixture(loop_scope="session")
async def shortage(cluster):
    """Three batch pods, lowest priority first: `last`, `low` and `high`."""
    async with node_shortage.pods(cluster) as pods:
        yield pods
    await cluster.strategy(enable=False)
