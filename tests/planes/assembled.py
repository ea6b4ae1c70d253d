"""The whole embedded control plane for the tests of its parts."""

import pytest

from simulator import cluster
from simulator.kubelet import kubelet
from tests.planes import raw


class Host:
    """Records what the kubelets tell."""

    def __init__(self):
        self.log = []

    def started(self, node, pod):
        self.log.append(("started", node, pod["metadata"]["name"]))

    def stopped(self, node, pod):
        self.log.append(("stopped", node, pod["metadata"]["name"]))


@pytest.fixture
def host_log():
    return Host()


@pytest.fixture
async def assembled(host_log):
    options = cluster.Options(
        machines=[kubelet.Machine("n", cpu=4), kubelet.Machine("m", cpu=4)],
        hooks=kubelet.Hooks(host_log.started, host_log.stopped),
        users=["koord-manager"],
    )
    async with cluster.running(options) as running:
        yield running


@pytest.fixture
async def assembled_api(assembled):
    """A raw client of it as administrator."""
    async with raw.connected(assembled.server, assembled.ca, assembled.token) as client:
        yield client
