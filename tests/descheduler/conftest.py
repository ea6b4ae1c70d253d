import contextlib
import pathlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from api import names, resources
from descheduler import app, settings
from kube.client import access, client
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver
from tests import loopback, settled_plane
from tests.planes import definitions

KINDS = {
    *("NodeMetric", "PodMigrationJob", "Reservation", "Device"),
    *("NodeResourceTopology", "PodGroup", "ElasticQuota", "ClusterNetworkTopology"),
}


class World(settled_plane.SettledPlane):
    """A control plane with one administrator, seen over HTTP."""

    @contextlib.asynccontextmanager
    async def client(self, name: str) -> AsyncIterator[client.Client]:
        """Connect as the administrator, under the name of a process."""
        async with client.Client(self.access, clock=self.clock, user_agent=name) as found:
            yield found

    async def create(self, resource: resources.Resource, *bodies: dict[str, Any]) -> None:
        """Create objects, and write the status that they come with."""
        for body in bodies:
            namespace = body["metadata"].get("namespace", "") if resource.namespaced else ""
            await self.admin.create(resource, body, namespace)
            if body.get("status"):
                await self.status(resource, body["metadata"]["name"], body["status"], namespace)

    async def status(
        self, resource: resources.Resource, name: str, status: dict[str, Any], namespace: str = ""
    ) -> None:
        """Write the status of an object."""
        await self.admin.patch(
            resource, name, {"status": status}, namespace=namespace, subresource="status"
        )

    @contextlib.asynccontextmanager
    async def descheduler(
        self, folder: pathlib.Path, configuration: str = "", **changed: Any
    ) -> AsyncIterator[app.App]:
        """Run a descheduler until the end of the block."""
        file = folder / "descheduler.yaml"
        file.write_text(configuration)
        given = {
            "configuration": file,
            "leader_election": settings.LeaderElectionSettings(enabled=False),
            "health": settings.HealthSettings(host="127.0.0.1", port=0),
            **changed,
        }
        chosen = settings.Settings(**given)
        async with app.running(chosen, access=self.access, clock=self.clock) as running:
            await self.until(lambda: running.health.ready)
            yield running


@pytest.fixture
def clock() -> ManualClock:
    """A clock that starts now, since leases and events tell real dates."""
    return loopback.LoopbackClock(float(int(time.time())))


@pytest.fixture
async def world(clock: ManualClock) -> AsyncIterator[World]:
    """An empty cluster that knows our kinds."""
    async with apiserver.running(clock=clock, options=apiserver.Options(encrypted=False)) as plane:
        who = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(who, clock=clock, user_agent="admin") as admin:
            await definitions.store(plane, admin, KINDS)
            await admin.create(resources.NAMESPACES, {"metadata": {"name": names.NAMESPACE}})
            yield World(plane, admin, clock)
