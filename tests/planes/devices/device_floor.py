"""Nodes of several shapes on a plane, and pods that want CPUs of their own and devices there."""

import functools
import json

from api import names, resources
from tests.planes import raw
from tests.planes.devices import device_nodes, device_recount

PATIENCE = 60.0
PLUGINS = {
    "enabled": ["BatchFit", "NodeNUMAResource", "DeviceShare"],
    "weights": {"NodeNUMAResource": 1, "DeviceShare": 1},
}
FLAGS = tuple(f"--plugins.{name}={json.dumps(value)}" for name, value in PLUGINS.items())
"""The same for an extender that is a process of its own."""
JOINT = {
    names.ANNOTATION_DEVICE_JOINT: json.dumps(
        {"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"}
    )
}
SPEC = "scheduling.koordinator.sh/resource-spec"


class Floor:
    """The nodes of one test; `page` reads a page of the extender as a status and a text."""

    def __init__(self, here, page):
        self.here, self.api, self.page = here, here.api, page
        self.shapes = {}
        """By name of the node."""
        self.has_status = False
        """Whether a manager keeps the status of Device objects."""

    async def machine(self, suffix, shape="", **labels):
        """Create a node of a shape, as its kubelet and its agent report it."""
        found = device_nodes.SHAPES[shape or suffix]
        if found.policy:
            labels["node.koordinator.sh/numa-topology-policy"] = found.policy
        node = await self.here.node(suffix, labels=labels, more=found.allocatable())
        self.shapes[node] = found
        reported = device_nodes.topology(node, found)
        await self.api.post(resources.NODE_RESOURCE_TOPOLOGIES.path(), reported)
        if found.gpus:
            await self.api.post(resources.DEVICES.path(), device_nodes.device(node, found))
        await self.known(node)
        return node

    async def known(self, node):
        """Wait until the extender knows what the agent reports of a node."""
        shape = self.shapes[node]

        async def there():
            cpu, device = await self.pages(node)
            free = device_recount.cpus(cpu.get("availableCPUs", ""))
            gpus = len(device.get("deviceTotalDetail", {}).get("gpu", {}))
            return bool(free) and gpus == shape.gpus

        await raw.eventually(there, PATIENCE)

    async def pages(self, node):
        """What the extender counts of CPUs and of devices on a node."""
        found = []
        for path in (device_recount.CPU_PAGE, device_recount.DEVICE_PAGE):
            status, text = await self.page(path + node)
            document = json.loads(text) if status == 200 else {}
            found.append(document.get("node", {}).get("figures", {}))
        return found

    async def report(self, node, **facts):
        """Report the devices of a node anew, for instance that some are `sick`."""
        body = device_nodes.device(node, self.shapes[node], **facts)
        path = resources.DEVICES.path(name=node)
        answer = await self.api.call("PATCH", path, body, kind=raw.MERGE_PATCH)
        assert answer.status == 200, answer.message

    # -- pods --------------------------------------------------------------------------------

    async def exclusive(self, name, cpu, *, spec=None, **more):
        """A pod of class LSR that wants CPUs of its own."""
        notes = {SPEC: json.dumps(spec)} if spec else {}
        labels = {names.LABEL_QOS: "LSR"}
        requests = {"cpu": str(cpu), "memory": "1Gi", **more.pop("more", {})}
        await self.here.pod(name, requests=requests, annotations=notes, labels=labels, **more)

    async def share(self, name, percent=50, **more):
        """A pod that wants a part of a GPU, or several whole ones."""
        requests = {"cpu": "100m", names.GPU: str(percent), **more.pop("more", {})}
        await self.here.pod(name, requests=requests, **more)

    async def job(self, name, gpus=8, cards=2, **more):
        """A pod that wants whole GPUs and RDMA cards on the same PCIe switches."""
        more.setdefault("annotations", JOINT)
        wanted = {names.RDMA: str(100 * cards)}
        await self.share(name, 100 * gpus, more=wanted, **more)

    async def placed(self, name):
        """Wait for a pod to have a node; returns the pod."""
        return await self.here.bound(name, PATIENCE)

    async def on(self, node, *pods):
        """Wait until these pods have this node; returns them."""
        found = [await self.placed(name) for name in pods]
        assert {pod["spec"]["nodeName"] for pod in found} == {node}
        return found

    # -- what has to hold --------------------------------------------------------------------

    async def agree(self):
        """Wait until annotations, a recount, Device status and pages of the extender agree."""
        found = []

        async def nothing():
            found[:] = await self.problems()
            return not found

        try:
            await raw.eventually(nothing, PATIENCE)
        except TimeoutError:
            raise AssertionError("\n".join(found)) from None

    async def recounts(self):
        """Count every node anew from the objects of the API server."""
        pods = (await self.api.get("/api/v1/pods"))["items"]
        recount = functools.partial(device_recount.Recount, pods=pods)
        found = []
        for node, shape in self.shapes.items():
            device = (await self.api.call("GET", resources.DEVICES.path(name=node))).body
            found.append(recount(node, shape, device if shape.gpus else None))
        return found

    async def problems(self):
        """What does not hold, or on what the extender and a recount disagree."""
        found = []
        for recount in await self.recounts():
            found += recount.problems()
            if self.has_status and self.shapes[recount.node].gpus:
                path = resources.DEVICES.path(name=recount.node)
                found += recount.status_differences((await self.api.call("GET", path)).body)
            cpu, device = await self.pages(recount.node)
            if cpu and device:
                found += recount.differences(cpu, device)
            else:
                found.append(f"the extender shows nothing of {recount.node}")
        return found

    async def remove(self):
        """Take away what agents reported; nodes and pods leave with the test."""
        for node, shape in self.shapes.items():
            await self.api.call("DELETE", resources.NODE_RESOURCE_TOPOLOGIES.path(name=node))
            if shape.gpus:
                await self.api.call("DELETE", resources.DEVICES.path(name=node))
