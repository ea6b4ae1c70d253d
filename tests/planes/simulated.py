"""The simulator as scenarios see it."""

import contextlib

from api.kubernetes import scheduler_config
from simulator import cluster


class SimulatedPlane:
    """The embedded control plane; scenarios play the kubelets themselves, as on binaries."""

    name = "simulator"
    # The Kubernetes release whose behaviour it shows.
    release = (1, 36)

    def __init__(self, plane):
        self.cluster = plane
        self.server = plane.server
        self.ca = plane.ca
        self.token = plane.token

    async def start_scheduler(self, extender_url, **options):
        await self.cluster.start_scheduler(scheduler_config.Options(extender_url, **options))

    async def stop_scheduler(self):
        await self.cluster.stop_scheduler()

    async def forget_history(self):
        self.cluster.forget_history()


@contextlib.asynccontextmanager
async def running():
    async with cluster.running(cluster.Options(with_kubelets=False, encrypted=False)) as plane:
        yield SimulatedPlane(plane)
