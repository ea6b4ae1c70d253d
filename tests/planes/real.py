"""The real control plane as scenarios see it."""

import contextlib

import aiohttp

from api.kubernetes import scheduler_config
from simulator.processes import binaries
from tests.e2e import binaries as builds


class RealPlane:
    """Binaries of a Kubernetes release; nodes and kubelets exist only as API objects."""

    name = "real"

    def __init__(self, plane):
        self.binaries = plane
        self.server = plane.server
        self.ca = plane.ca
        self.token = plane.token
        major, minor, _ = builds.version().split(".")
        self.release = (int(major), int(minor))

    async def start_scheduler(self, extender_url, *, adjust=None, **options):
        """Start the scheduler with our configuration, after `adjust` has changed it in place."""
        config = scheduler_config.render(scheduler_config.Options(extender_url, **options))
        if adjust is not None:
            adjust(config)
        await self.binaries.start_scheduler(config)

    async def stop_scheduler(self):
        await self.binaries.stop_scheduler()

    async def forget_history(self):
        """Compact etcd and restart the API server, whose caches remember as well."""
        url = self.binaries.etcd_url
        async with aiohttp.ClientSession() as session:
            status = await self._etcd(session, f"{url}/v3/kv/range", {"key": "AA=="})
            revision = status["header"]["revision"]
            await self._etcd(session, f"{url}/v3/kv/compaction", {"revision": revision})
        await self.binaries.restart_apiserver()

    @staticmethod
    async def _etcd(session, url, body):
        async with session.post(url, json=body) as response:
            assert response.status == 200, await response.text()
            return await response.json(content_type=None)


@contextlib.asynccontextmanager
async def running(folder, workdir, **changes):
    """A real control plane; `changes` are other options than those of the shared one."""
    options = binaries.Options(**{"audit": True, "service_routing": True, **changes})
    async with binaries.running(folder, workdir, options=options) as plane:
        yield RealPlane(plane)
