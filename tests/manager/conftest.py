import contextlib
import gzip
import json
import pathlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from api import names, resources
from api.wire import durations
from kube.client import access, client
from manager import app, settings
from process.runtime.clock import ManualClock
from simulator import faults
from simulator.apiserver import apiserver
from tests import loopback, settled_plane
from tests.planes import definitions

KINDS = {
    "NodeMetric",
    "NodeSLO",
    "NodeResourceTopology",
    "Recommendation",
    "Device",
    "ClusterColocationProfile",
    "ElasticQuotaProfile",
    "ElasticQuota",
    "ScheduleExplanation",
    "Reservation",
    "ClusterNetworkTopology",
    "PodGroup",
}
Case = tuple[str, dict[str, Any], dict[str, Any]]


@pytest.fixture
def reference() -> Callable[[str], Iterator[Case]]:
    """Yield the recorded cases of one file: name, input, output."""
    folder = pathlib.Path(__file__).parent.parent / "reference"

    def cases(name: str) -> Iterator[Case]:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt") as lines:
            for number, line in enumerate(lines):
                case = json.loads(line)
                yield f"{name}:{number}", case["in"], case["out"]

    return cases


class World(settled_plane.SettledPlane):
    """A control plane with one administrator and trouble on demand, seen over HTTP."""

    def __init__(
        self,
        plane: apiserver.ApiServer,
        admin: client.Client,
        clock: ManualClock,
        trouble: faults.Faults | None = None,
    ) -> None:
        super().__init__(plane, admin, clock)
        self.faults = trouble or faults.Faults(clock)

    def reasons(self, name: str) -> list[str]:
        """Return the reasons of all events about an object of this name."""
        return [
            event["reason"]
            for event in self.stored(resources.CORE_EVENTS)
            if (event.get("involvedObject") or event.get("regarding"))["name"] == name
        ]

    async def node(self, name: str, cpu: str = "64", memory: str = "256Gi", **metadata: Any):
        await self.admin.create(
            resources.NODES,
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}},
        )
        amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
        await self.admin.patch(
            resources.NODES,
            name,
            {"status": {"capacity": amounts, "allocatable": amounts}},
            subresource="status",
        )

    async def report(self, node: str, cpu: str, pods: dict[str, str] | None = None) -> None:
        """Report as the agent does: what the system uses, and what pods use."""
        usage = {"resources": {"cpu": cpu, "memory": "1Gi"}}
        figures = [
            {"namespace": "default", "name": pod, "podUsage": {"resources": {"cpu": used}}}
            for pod, used in (pods or {}).items()
        ]
        status = {
            "updateTime": durations.moment(self.clock.now()),
            "nodeMetric": {"nodeUsage": usage, "systemUsage": usage},
            "podsMetric": figures,
        }
        await self.admin.patch(
            resources.NODE_METRICS, node, {"status": status}, subresource="status"
        )

    async def pod(self, name: str, node: str, cpu: str) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        await self.admin.create(
            resources.PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {"nodeName": node, "containers": [container]},
            },
            "default",
        )

    async def configure(self, **sections: Any) -> None:
        """Write the configuration map of the cluster."""
        data = {
            key.replace("_", "-"): value if isinstance(value, str) else json.dumps(value)
            for key, value in sections.items()
        }
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.CONFIG_MAP_SLO, "namespace": names.NAMESPACE},
            "data": data,
        }
        await self.admin.patch(
            resources.CONFIG_MAPS,
            names.CONFIG_MAP_SLO,
            body,
            namespace=names.NAMESPACE,
            kind=client.Patch.APPLY,
            field_manager="admin",
            force=True,
        )

    @contextlib.asynccontextmanager
    async def manager(self, **changed: Any) -> AsyncIterator[app.App]:
        """Run a manager until the end of the block."""
        election = settings.LeaderElectionSettings(enabled=False)
        given = {
            "leader_election": election,
            "health": settings.HealthSettings(host="127.0.0.1", port=0),
            **changed,
        }
        chosen = settings.Settings(**given)
        async with app.running(chosen, access=self.access, clock=self.clock) as running:
            await self.until(lambda: running.health.ready)
            await self.quiet()
            yield running


@pytest.fixture
def clock() -> ManualClock:
    """A clock that starts now, because TLS compares certificates with the real date."""
    return loopback.LoopbackClock(float(int(time.time())))


@pytest.fixture
async def world(clock: ManualClock) -> AsyncIterator[World]:
    """An empty cluster that knows our kinds."""
    trouble = faults.Faults(clock)
    options = apiserver.Options(faults=trouble, encrypted=False)
    async with apiserver.running(clock=clock, options=options) as plane:
        who = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(who, clock=clock, user_agent="admin") as admin:
            await definitions.store(plane, admin, KINDS)
            await admin.create(resources.NAMESPACES, {"metadata": {"name": names.NAMESPACE}})
            yield World(plane, admin, clock, trouble)
