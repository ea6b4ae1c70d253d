"""What a scenario needs from a cluster: a namespace, nodes and pods that leave with the test."""

import contextlib
import itertools
import json

from tests.planes import invariants, raw

SERIAL = itertools.count(1)


class World:
    """One test's corner of a control plane: its nodes carry a label that its pods select."""

    def __init__(self, plane, api):
        self.plane = plane
        self.api = api
        self.id = f"w{next(SERIAL)}"
        self.namespace = self.id
        self.nodes = []

    def name(self, suffix):
        """A name for something that lives outside the namespace."""
        return f"{self.id}-{suffix}"

    def path(self, plural, name="", subresource="", group=""):
        prefix = f"/apis/{group}" if group else "/api/v1"
        parts = [prefix, "namespaces", self.namespace, plural, name, subresource]
        return "/".join(part for part in parts if part)

    async def open(self):
        await self.api.post("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        # Real API servers refuse pods without the account. The controllers make it as well, but may
        # sleep for half a minute after a test that restarted the API server.
        account = {"metadata": {"name": "default"}}
        answer = await self.api.call("POST", self.path("serviceaccounts"), account)
        assert answer.status in (201, 409), answer.message

    async def close(self):
        pods = await self.api.get(self.path("pods"))
        for pod in pods["items"]:
            path = self.path("pods", pod["metadata"]["name"])
            if pod["metadata"].get("finalizers"):
                body = {"metadata": {"finalizers": None}}
                await self.api.call("PATCH", path, body, kind="application/merge-patch+json")
            await self.api.call("DELETE", path, query={"gracePeriodSeconds": "0"})
        for name in self.nodes:
            await self.api.call("DELETE", f"/api/v1/nodes/{name}")
        await self.api.call("DELETE", f"/api/v1/namespaces/{self.namespace}")

    async def check(self):
        """No node of this world is over-committed."""
        nodes = (await self.api.get("/api/v1/nodes", labelSelector=f"world={self.id}"))["items"]
        pods = (await self.api.get("/api/v1/pods"))["items"]
        assert list(invariants.overcommitted(nodes, pods)) == []

    async def node(self, suffix, *, name="", labels=None, annotations=None, **allocatable):
        """Create a ready node and return its name; `allocatable` uses _ for - and / as given."""
        name = name or self.name(suffix)
        amounts = {"cpu": "8", "memory": "16Gi", "pods": "110", **allocatable.pop("more", {})}
        amounts.update(allocatable)
        meta = {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "world": self.id, **(labels or {})},
            "annotations": annotations or {},
        }
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [condition]}
        # Pods that other tests left to the garbage collector must not fill the node meanwhile.
        taint = {"key": "world", "value": self.id, "effect": "NoSchedule"}
        # In one write, as a kubelet registers: no scheduler sees the node without its resources.
        body = {"metadata": meta, "spec": {"taints": [taint]}, "status": status}
        await self.api.post("/api/v1/nodes", body)
        self.nodes.append(name)
        return name

    def pod_body(self, name, *, requests=None, annotations=None, labels=None, **spec):
        requests = {"cpu": "1", "memory": "1Gi"} if requests is None else requests
        extended = {k: v for k, v in requests.items() if "/" in k}
        container = {
            "name": "main",
            "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": requests, "limits": extended},
        }
        mine = {"key": "world", "operator": "Equal", "value": self.id, "effect": "NoSchedule"}
        tolerations = [mine, *spec.pop("tolerations", ())]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
            "spec": {
                "containers": [container],
                "nodeSelector": {"world": self.id},
                "terminationGracePeriodSeconds": 0,
                "tolerations": tolerations,
                **spec,
            },
        }

    async def pod(self, name, **options):
        return await self.api.post(self.path("pods"), self.pod_body(name, **options))

    async def wait(self, name, predicate, timeout=raw.PATIENCE):
        return await self.api.wait_until(self.path("pods", name), predicate, timeout)

    async def bound(self, name, timeout=raw.PATIENCE):
        """Wait for the pod to have a node; returns the pod."""
        return await self.wait(name, lambda pod: pod and pod["spec"].get("nodeName"), timeout)

    async def refused(self, name, saying="", reason="Unschedulable", timeout=raw.PATIENCE):
        """Wait for the PodScheduled condition to be false and to say this; returns its message."""

        def told(pod):
            condition = self._scheduled(pod)
            return condition.get("reason") == reason and saying in condition["message"]

        pod = await self.wait(name, told, timeout)
        return self._scheduled(pod)["message"]

    @staticmethod
    def _scheduled(pod):
        conditions = (pod or {}).get("status", {}).get("conditions", [])
        for condition in conditions:
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return condition
        return {}

    @contextlib.asynccontextmanager
    async def priority(self, value, **more):
        """The name of a priority class of this value that pods may already use."""
        name = self.name(f"priority-{value}")
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await self.api.post(path, {"metadata": {"name": name}, "value": value, **more})
        try:
            # Admission hears of a new class a moment after it exists.
            await raw.eventually(lambda: self._usable(name))
            yield name
        finally:
            await self.api.delete(f"{path}/{name}")

    async def _usable(self, priority):
        body = self.pod_body("dry", priorityClassName=priority)
        query = {"dryRun": "All"}
        return (await self.api.call("POST", self.path("pods"), body, query=query)).status == 201

    async def known(self, extender):
        """Wait until the scheduler knows every node of this world, by asking with small pods."""
        for number in range(100):
            name = f"probe-{number}"
            await self.pod(name, requests={})
            await self.bound(name)
            asked = extender.of("filter", name)[0].body["NodeNames"]
            await self.remove(name)
            if set(self.nodes) <= set(asked):
                extender.calls.clear()
                return
        raise AssertionError("the scheduler never heard of all nodes")

    async def heard(self):
        """Wait until the scheduler knows every node of this world: it places a small pod on each.

        It hears of nodes and of pods by two watches, of which either may be behind the other.
        """
        for node in self.nodes:
            selector = {"kubernetes.io/hostname": node}
            await self.pod("probe", requests={}, nodeSelector=selector)
            await self.bound("probe")
            await self.remove("probe")

    async def annotate(self, name, **annotations):
        body = {"metadata": {"annotations": annotations}}
        return await self.api.patch(self.path("pods", name), body)

    async def remove(self, name):
        await self.api.delete(self.path("pods", name), gracePeriodSeconds="0")

    async def drop(self, name):
        """Remove a pod that may have left by itself meanwhile."""
        await self.api.call("DELETE", self.path("pods", name), query={"gracePeriodSeconds": "0"})

    async def events(self, name):
        found = await self.api.get(self.path("events", group="events.k8s.io/v1"))
        return [e for e in found["items"] if e["regarding"]["name"] == name]

    async def told(self, name, reason, saying=""):
        """Wait for an event about an object; clients send them after what they tell of."""

        async def found():
            events = await self.events(name)
            return [e for e in events if e["reason"] == reason and saying in e["note"]]

        return (await raw.eventually(found))[0]

    def show(self, value):
        return json.dumps(value, indent=1)


@contextlib.asynccontextmanager
async def opened(plane, api):
    """A world that is removed afterwards, also after a failure."""
    world = World(plane, api)
    await world.open()
    try:
        yield world
        await world.check()
    finally:
        await world.close()
