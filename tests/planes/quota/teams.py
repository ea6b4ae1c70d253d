"""Quotas and pods of one test, on any plane: the vocabulary of scenarios of elastic quota."""

import asyncio
import contextlib
import json
import time

from api import names, resources
from process.runtime import supervise
from tests.planes import raw

PATIENCE = 60.0
SHAPES = {resource.group: resource for resource in resources.QUOTA_RESOURCES}
SIGS = "scheduling.sigs.k8s.io"
CLUSTERWIDE = ("Namespace", "PriorityClass")
PLURALS = {
    "Namespace": "namespaces",
    "PriorityClass": "priorityclasses",
    "Pod": "pods",
    "Deployment": "deployments",
    "ElasticQuota": "elasticquotas",
}
CONDITION = "koord.sh/QuotaAvailable"
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
ARGUMENTS = resources.CONFIG_MAPS.path(names.NAMESPACE, names.CONFIG_MAP_SCHEDULER)


class Teams:
    """One test's quotas and pods."""

    def __init__(self, plane, here, system):
        self.plane = plane
        self.here = here
        self.api = here.api
        self.system = system
        self.kube = None
        """A client of the product, for what people ask for on the command line."""
        self._made = []

    async def apply(self, document):
        """Create an object; it is removed after the test."""
        version, kind = document["apiVersion"], document["kind"]
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if kind not in CLUSTERWIDE:
            path += f"/namespaces/{document['metadata']['namespace']}"
        path += f"/{PLURALS[kind]}"
        if kind == "Namespace":
            # Tests of one control plane share it, and only some planes can remove one.
            answer = await self.api.call("POST", path, document)
            assert answer.status in (201, 409), answer.message
            return answer.body
        made = await self.api.post(path, document)
        self._made.append(f"{path}/{document['metadata']['name']}")
        return made

    async def quota(self, name, *, group=SIGS, labels=None, **spec):
        """Create a quota of one of the three shapes; returns its name in the whole cluster."""
        labels = labels or {}
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
                    "labels": labels,
                },
                "spec": spec,
            }
        )
        await self.known(self.here.name(name), takes_pods=names.LABEL_QUOTA_IS_PARENT not in labels)
        return self.here.name(name)

    async def parent(self, name, **spec):
        """Create a quota that holds quotas."""
        return await self.quota(name, labels={names.LABEL_QUOTA_IS_PARENT: "true"}, **spec)

    def path(self, quota, group=SIGS):
        """Where a quota is found."""
        shape = SHAPES[group]
        return self.here.path(shape.plural, quota, group=shape.api_version)

    async def known(self, *quotas, takes_pods=True):
        """Wait until every process knows these quotas."""

        async def everywhere():
            if not await self.system.knows(*quotas):
                return False
            return not takes_pods or all([await self._gated(name) for name in quotas])

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

        await self.agree(counts, lambda found: found == wanted)

    @staticmethod
    async def agree(look, wanted):
        """Wait until what is seen is as wanted, and see that it stays so."""
        found = None

        async def reached():
            nonlocal found
            found = await look()
            return wanted(found)

        try:
            await raw.eventually(reached, PATIENCE)
        except TimeoutError:
            raise AssertionError(f"in the end there is {found}") from None
        for _ in range(10):
            await asyncio.sleep(0.05)
            found = await look()
            assert wanted(found), found

    async def waiting(self, quota):
        """Return a pod of a quota without a node."""
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

    async def runs_on(self, quota, **wanted):
        """Wait until the annotations of a quota say that its runtime is this."""

        def says(found):
            notes = (found or {}).get("metadata", {}).get("annotations") or {}
            runtime = json.loads(notes.get(names.ANNOTATION_QUOTA_RUNTIME) or "{}")
            return all(str(runtime.get(key)) == value for key, value in wanted.items())

        return await self.api.wait_until(self.path(quota), says, PATIENCE)

    async def relabel(self, path, **labels):
        """Change labels of the group of quotas on an object."""
        prefix = "quota.scheduling.koordinator.sh/"
        body = {"metadata": {"labels": {prefix + key: value for key, value in labels.items()}}}
        return await self.api.patch(path, body)

    @contextlib.asynccontextmanager
    async def peak(self, quota):
        """The most pods of a quota that had a node at the same time, from now on, as `highest`."""
        path, selector = self.here.path("pods"), f"{names.LABEL_QUOTA_NAME}={quota}"
        found = await self.api.get(path, labelSelector=selector)
        seen = Peak({pod["metadata"]["uid"] for pod in found["items"] if holds(pod)})
        version = found["metadata"]["resourceVersion"]
        async with (
            self.api.watch(path, labelSelector=selector, resourceVersion=version) as stream,
            supervise.Supervisor("peak") as supervisor,
        ):
            supervisor.spawn("watch", seen.follow(stream))
            yield seen
            # What the watch has not told yet counts as well.
            await self.here.pod("last", labels={names.LABEL_QUOTA_NAME: quota}, requests={})
            await asyncio.wait_for(seen.complete.wait(), PATIENCE)

    async def clear(self):
        """Remove what the test has made; its pods first, which use the quotas."""
        pods = await self.api.get(self.here.path("pods"))
        for pod in pods["items"]:
            await self.here.drop(pod["metadata"]["name"])
        for path in reversed(self._made):

            async def gone(path=path):
                # A quota is kept as long as it has pods, and those of a Deployment go later.
                answer = await self.api.call("DELETE", path, query={"gracePeriodSeconds": "0"})
                return answer.status == 404

            # Other tests use the same namespace, and some the same names.
            await raw.eventually(gone, PATIENCE)


class Peak:
    """Pods that hold quota, as one watch tells of them."""

    def __init__(self, holding):
        self._holding = holding
        self.highest = len(holding)
        self.complete = asyncio.Event()

    async def follow(self, stream):
        while event := await stream.next(None):
            pod = event["object"]
            if pod["metadata"]["name"] == "last":
                self.complete.set()
            elif event["type"] != "DELETED" and holds(pod):
                self._holding.add(pod["metadata"]["uid"])
            else:
                self._holding.discard(pod["metadata"]["uid"])
            self.highest = max(self.highest, len(self._holding))


def holds(pod):
    """Whether a pod uses quota: it has a node and has not ended."""
    ended = pod["status"].get("phase") in ("Succeeded", "Failed")
    return bool(pod["spec"].get("nodeName")) and not ended


def _written(value):
    return {key: str(amount) for key, amount in value.items()} if isinstance(value, dict) else value


def _sentence(pod):
    """What the conditions of a waiting pod say about quota."""
    found = (pod or {}).get("status", {}).get("conditions", [])
    told = {one["type"]: one.get("message", "") for one in found if one["status"] == "False"}
    return told.get(CONDITION, "") or told.get("PodScheduled", "")


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
