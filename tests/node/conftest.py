"""One real node for all tests here; skipped unless asked for, obligatory when asked for."""

import os

import pytest
import pytest_asyncio

from deploy.image import build
from tests.e2e import binaries
from tests.planes import node, node_cluster, node_programs, real

SWITCH = "KOORD_NODE"
# The first test also waits for the plane, the node and the image.
TIMEOUT = 600
# Read before the root conftest cleans the environment of each test.
_ASKED = bool(os.environ.get(SWITCH))


def pytest_collection_modifyitems(items):
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
def _nothing_left():
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
