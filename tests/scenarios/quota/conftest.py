"""The whole system on one control plane, and teams that share its nodes by elastic quotas."""

import asyncio
import contextlib
import json
import time

import pytest_asyncio

from api import names, resources
from cli.dev import all_in_one
from cli.install import apply
from extender.plugins.elastic_quota import elastic_quota
from kube.client import access as accesses
from kube.client import client as clients
from manager import settings as manager_settings
from process.runtime import clock as clocks
from tests.planes import raw

PATIENCE = 60.0
SCHEDULERS = ("default-scheduler", "koord-scheduler")
IMPATIENT = {
    # Nodes without an agent: nobody waits for a report of their load.
    "controllers": ["*", "-nodemetric"],
    "health": all_in_one.local(),
}
ARGUMENTS = resources.CONFIG_MAPS.path(names.NAMESPACE, names.CONFIG_MAP_SCHEDULER)
CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "pluginConfig": [{"name": "ElasticQuota", "args": {"delayEvictTime": "1s"}}],
        }
    ],
}
SHAPES = {resource.group: resource for resource in resources.QUOTA_RESOURCES}
PLUGIN = elastic_quota.NAME
CLUSTERWIDE = ("Namespace", "PriorityClass")
PLURALS = {
    "Namespace": "namespaces",
    "PriorityClass": "priorityclasses",
    "Pod": "pods",
    "Deployment": "deployments",
    "ElasticQuota": "elasticquotas",
}
CONDITION = "koord.sh/QuotaAvailable"


class Teams:
    """One test's quotas and pods."""

    def __init__(self, plane, here, system):
        self.plane = plane
        self.here = here
        self.api = here.api
        self.system = system
        self._made = []

    async def apply(self, document):
        """Create an object; it is removed after the test."""
        version, kind = document["apiVersion"], document["kind"]
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if kind not in CLUSTERWIDE:
            path += f"/namespaces/{document['metadata']['namespace']}"
        path += f"/{PLURALS[kind]}"
        made = await self.api.post(path, document)
        self._made.append(f"{path}/{document['metadata']['name']}")
        return made

    async def quota(self, name, *, group="scheduling.sigs.k8s.io", labels=None, **spec):
        """Create a quota of one of the three shapes; returns its name in the whole cluster."""
        shape = SHAPES[group]
        spec = {key: _written(value) for key, value in spec.items()}
        await self.apply(
            {
                "apiVersion": shape.api_version,
                "kind": "ElasticQuota",
                "metadata": {
                    "name": self.here.name(name),
                    "namespace": self.here.namespace,
                    # Pods of a test say their quota; a short shape would claim the namespace.
                    "labels": labels or {},
                },
                "spec": spec,
            }
        )
        await self.known(self.here.name(name))
        return self.here.name(name)

    async def known(self, *quotas):
        """Wait until every process knows these quotas."""

        async def everywhere():
            state = self.system.extender.books.cluster.view().cluster[PLUGIN]
            if not all(state.forest.quota(name) for name in quotas):
                return False
            return all([await self._gated(name) for name in quotas])

        await raw.eventually(everywhere, PATIENCE)

    async def _gated(self, quota):
        """Tell whether admission lets pods of a quota wait."""
        body = self.here.pod_body("dry", labels={names.LABEL_QUOTA_NAME: quota})
        query = {"dryRun": "All"}
        made = (await self.api.call("POST", self.here.path("pods"), body, query=query)).body
        return {"name": names.GATE_QUOTA} in made["spec"].get("schedulingGates", ())

    async def pods(self, quota, prefix, count, cpu="1", **options):
        """Create pods of a quota, one after the other."""
        found = []
        for number in range(count):
            labels = {names.LABEL_QUOTA_NAME: quota, **options.get("labels", {})}
            more = {key: value for key, value in options.items() if key != "labels"}
            requests = {"cpu": cpu, **more.pop("requests", {})}
            name = f"{prefix}-{number}"
            await self.here.pod(name, requests=requests, labels=labels, **more)
            found.append(name)
        return found

    async def bound(self, quota, namespace=""):
        """Return the pods of a quota that have a node."""
        path = f"/api/v1/namespaces/{namespace or self.here.namespace}/pods"
        found = await self.api.get(path, labelSelector=f"{names.LABEL_QUOTA_NAME}={quota}")
        return [
            pod["metadata"]["name"]
            for pod in found["items"]
            if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
        ]

    async def settled(self, namespace="", **wanted):
        """Wait until so many pods of each quota have a node, and see that it stays so."""

        async def counts():
            return {quota: len(await self.bound(quota, namespace)) for quota in wanted}

        async def reached():
            return await counts() == wanted

        try:
            await raw.eventually(reached, PATIENCE)
        except TimeoutError:
            raise AssertionError(f"bound {await counts()}, wanted {wanted}") from None
        for _ in range(10):
            await asyncio.sleep(0.05)
            assert await counts() == wanted

    async def waiting(self, quota):
        """Return a pod of a quota without a node; those of one second have no order among them."""
        found = await self.api.get(
            self.here.path("pods"), labelSelector=f"{names.LABEL_QUOTA_NAME}={quota}"
        )
        return next(
            pod["metadata"]["name"] for pod in found["items"] if not pod["spec"].get("nodeName")
        )

    async def waits(self, name, saying):
        """Wait until a pod of this test says that it waits for quota; returns the sentence."""
        return await self.told(self.here.path("pods", name), saying)

    async def told(self, path, saying="Insufficient quotas"):
        """Wait until a pod says that it waits for quota; returns the sentence."""
        pod = await self.api.wait_until(path, lambda pod: saying in _sentence(pod), PATIENCE)
        return _sentence(pod)

    @staticmethod
    def now():
        return time.monotonic()

    async def usable(self, priority):
        """Wait until pods may use a priority class."""
        body = self.here.pod_body("dry", priorityClassName=priority)

        async def check():
            query = {"dryRun": "All"}
            answer = await self.api.call("POST", self.here.path("pods"), body, query=query)
            return answer.status == 201

        await raw.eventually(check, PATIENCE)

    async def used(self, path, **wanted):
        """Wait until the status of a quota says that it uses this."""

        def says(found):
            used = (found or {}).get("status", {}).get("used", {})
            return all(used.get(key) == value for key, value in wanted.items())

        return await self.api.wait_until(path, says, PATIENCE)

    async def clear(self):
        """Remove what the test has made; its pods first, which use the quotas."""
        pods = await self.api.get(self.here.path("pods"))
        for pod in pods["items"]:
            await self.here.remove(pod["metadata"]["name"])
        for path in reversed(self._made):
            await self.api.call("DELETE", path, query={"gracePeriodSeconds": "0"})


def _written(value):
    return {key: str(amount) for key, amount in value.items()} if isinstance(value, dict) else value


def _sentence(pod):
    """What the conditions of a waiting pod say about quota."""
    found = (pod or {}).get("status", {}).get("conditions", [])
    told = {one["type"]: one.get("message", "") for one in found if one["status"] == "False"}
    return told.get(CONDITION, "") or told.get("PodScheduled", "")


@pytest_asyncio.fixture(loop_scope="session")
async def teams(plane, here, tmp_path):
    """Extender, webhook, manager and a scheduler that calls them."""
    clock = clocks.SystemClock()
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    async with contextlib.AsyncExitStack() as stack:
        kube = await stack.enter_async_context(
            clients.Client(access, clock=clock, user_agent="admin")
        )
        await apply.definitions(kube, clock)
        await apply.everything(kube, apply.documents("foundation.yaml"))
        await apply.one(kube, hurried())
        stack.push_async_callback(here.api.call, "DELETE", ARGUMENTS)
        options = all_in_one.Options(
            tmp_path / "served",
            manager=manager_settings.Settings.model_validate(IMPATIENT),
        )
        stack.push_async_callback(unregistered, here)
        system = await stack.enter_async_context(
            all_in_one.running(options, access=access, clock=clock)
        )
        await plane.start_scheduler(
            system.extender.url, filter_timeout_seconds=30, scheduler_names=SCHEDULERS
        )
        stack.push_async_callback(plane.stop_scheduler)
        made = Teams(plane, here, system)
        stack.push_async_callback(made.clear)
        yield made


def hurried():
    """The arguments of ElasticQuota without the grace that borrowers have in an installation."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.CONFIG_MAP_SCHEDULER, "namespace": names.NAMESPACE},
        "data": {names.CONFIG_MAP_SCHEDULER: json.dumps(CONFIGURATION)},
    }


async def unregistered(here):
    """Leave the control plane as other tests expect it."""
    for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
        await here.api.call("DELETE", resource.path(name="koord-webhook"))
