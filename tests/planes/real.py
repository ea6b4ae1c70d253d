"""The real control plane as scenarios see it."""

import contextlib

from simulator import binaries, scheduler_config


class RealPlane:
    """Binaries of a Kubernetes release; nodes and kubelets exist only as API objects."""

    name = "real"

    def __init__(self, plane):
        self.binaries = plane
        self.server = plane.server
        self.ca = plane.ca
        self.token = plane.token

    async def start_scheduler(self, extender_url, **options):
        config = scheduler_config.render(scheduler_config.Options(extender_url, **options))
        await self.binaries.start_scheduler(config)

    async def stop_scheduler(self):
        await self.binaries.stop_scheduler()


@contextlib.asynccontextmanager
async def running(folder, workdir):
    async with binaries.running(folder, workdir) as plane:
        yield RealPlane(plane)
