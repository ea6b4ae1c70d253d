"""A driver of Dynamic Resource Allocation that offers the GPUs of a node, and claims for them."""

from api import resources
from tests.planes import raw

DRIVER = "gpu.koord.test"
FINALIZERS = {"metadata": {"finalizers": None}}


class Driver:
    """What a driver publishes on a plane, and what is claimed of it; removed at the end."""

    def __init__(self, api, namespace):
        self.api, self.namespace = api, namespace
        self._made = []

    async def offers(self, node, *devices):
        """Publish devices of a node, each as its name and its attributes."""
        kind = resources.RESOURCE_SLICES
        listed = [
            {"name": name, "attributes": {key: {"string": text} for key, text in known.items()}}
            for name, known in devices
        ]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": listed}
        await self._post(kind, f"{node}-{DRIVER}", spec)

    async def device_class(self, name):
        """Create a class of all devices of the driver."""
        chosen = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
        await self._post(resources.DEVICE_CLASSES, name, {"selectors": chosen})

    async def claim(self, name, device_class):
        """Create a claim for one device of a class; returns its path."""
        request = {"name": "gpu", "exactly": {"deviceClassName": device_class}}
        spec = {"devices": {"requests": [request]}}
        return await self._post(resources.RESOURCE_CLAIMS, name, spec, self.namespace)

    async def given(self, path, node, device):
        """Write what kube-scheduler writes when it gives a device to a claim."""
        result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
        status = {"allocation": {"devices": {"results": [result]}}}
        await self.api.patch(f"{path}/status", {"status": status})

    async def given_back(self, path):
        """Take the device away from a claim again."""
        await self.api.call("PATCH", path, FINALIZERS, kind=raw.MERGE_PATCH)
        await self.api.patch(f"{path}/status", {"status": {"allocation": None}})

    async def _post(self, kind, name, spec, namespace=""):
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        await self.api.post(kind.path(namespace), {**body, "spec": spec})
        path = kind.path(namespace, name)
        self._made.append(path)
        return path

    async def remove(self):
        """Delete everything that was made, claims whose pods are gone included."""
        for path in reversed(self._made):
            await self.api.call("PATCH", path, FINALIZERS, kind=raw.MERGE_PATCH)
            await self.api.call("DELETE", path)
