"""A simulated cluster of two nodes without processes of ours, for commands that rebalance it."""

import contextlib
import json

import pytest_asyncio

from api import names, resources
from api.kubernetes import crds
from api.wire import durations
from kube.client import access as accesses
from kube.client import client as clients
from process.runtime import clock as clocks
from simulator import cluster
from simulator.processes import credentials
from tests import patience

KINDS = {
    *("NodeMetric", "PodMigrationJob", "Reservation", "Device", "ElasticQuota"),
    *("NodeResourceTopology", "PodGroup", "ClusterNetworkTopology"),
}
JOBS = resources.POD_MIGRATION_JOBS


class Cluster:
    """A simulated cluster without controllers of ours, and the command as a person runs it."""

    def __init__(self, plane, kube, kubeconfig):
        self.plane, self.kube, self.kubeconfig = plane, kube, kubeconfig

    async def node(self, name, cpu="8"):
        await self.kube.create(resources.NODES, {"metadata": {"name": name}})
        amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
        status = {"status": {"capacity": amounts, "allocatable": amounts}}
        await self.kube.patch(resources.NODES, name, status, subresource="status")

    async def replicas(self, name, count):
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        spec = {
            "replicas": count,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        }
        body = {"metadata": {"name": name}, "spec": spec}
        made = await self.kube.create(resources.REPLICA_SETS, body, "default")
        return made["metadata"]["uid"]

    async def pod(self, name, node, owner, cpu="2"):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
        body = {
            "metadata": {"name": name, "ownerReferences": [{**reference, **owner}]},
            "spec": {"nodeName": node, "containers": [container]},
        }
        await self.kube.create(resources.PODS, body, "default")
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await self.kube.patch(
            resources.PODS, name, {"status": status}, namespace="default", subresource="status"
        )

    async def lease(self, name, seconds_ago=0.0):
        moment = durations.precise_moment(clocks.SystemClock().now() - seconds_ago)
        spec = {"holderIdentity": "d", "leaseDurationSeconds": 15, "renewTime": moment}
        body = {"metadata": {"name": name}, "spec": spec}
        await self.kube.create(resources.LEASES, body, names.NAMESPACE)

    async def report(self, node, system, pods=()):
        """Let a node report so many cores used outside pods, and by pods of the namespace."""
        await self.kube.create(resources.NODE_METRICS, {"metadata": {"name": node}, "spec": {}})
        status = {
            "updateTime": durations.moment(clocks.SystemClock().now()),
            "nodeMetric": {
                "nodeUsage": {"resources": {"cpu": "1", "memory": "1Gi"}},
                "systemUsage": {"resources": {"cpu": system, "memory": "1Gi"}},
            },
            "podsMetric": [
                {
                    "namespace": "default",
                    "name": name,
                    "podUsage": {"resources": {"cpu": cpu, "memory": "1Gi"}},
                }
                for name, cpu in pods
            ],
        }
        await self.kube.patch(
            resources.NODE_METRICS, node, {"status": status}, subresource="status"
        )

    async def jobs(self):
        return (await self.kube.list(JOBS)).items

    async def ended(self, phase, *, among=2, **status):
        """End every job that is open once there are so many, as the descheduler would."""

        jobs = []

        async def look():
            jobs[:] = await self.jobs()

        await patience.until(lambda: len(jobs) == among, look)
        for job in jobs:
            if job.get("status", {}).get("phase"):
                continue
            body = {"status": {"phase": phase, **status}}
            await self.kube.patch(JOBS, job["metadata"]["name"], body, subresource="status")

    async def is_cordoned(self, name):
        found = await self.kube.get(resources.NODES, name)
        return bool(found["spec"].get("unschedulable"))


@pytest_asyncio.fixture
async def it(tmp_path):
    clock = clocks.SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        options = cluster.Options(with_kubelets=False, with_workloads=False)
        plane = await enter(cluster.running(options))
        access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
        kube = await enter(clients.Client(access, clock=clock))
        for definition in crds.definitions():
            if definition["spec"]["names"]["kind"] in KINDS:
                await kube.create(resources.CRDS, definition)
        await kube.create(resources.NAMESPACES, {"metadata": {"name": names.NAMESPACE}})
        login = tmp_path / "kubeconfig"
        login.touch(mode=0o600)
        login.write_text(json.dumps(credentials.kubeconfig(plane.server, plane.ca, plane.token)))
        found = Cluster(plane, kube, login)
        for name in ("n1", "n2"):
            await found.node(name)
        owner = {"name": "web", "uid": await found.replicas("web", 2)}
        for name in ("web-0", "web-1"):
            await found.pod(name, "n1", owner)
        yield found
