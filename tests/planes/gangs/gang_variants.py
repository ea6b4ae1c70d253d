"""Two gangs that each fit alone and not together: what excludes them, by how they are declared."""

import asyncio
import json

from api import names, resources
from tests.planes import raw
from tests.planes.devices import device_floor
from tests.planes.gangs import ganging

CORES = 4
NATIVE = resources.NATIVE_POD_GROUPS[0]
_TOGETHER = 16


class Plain:
    """Gangs that share nodes."""

    def __init__(self, form="annotations"):
        self._form = form

    async def prepare(self, gangs, size):
        """Create nodes for one gang and half of another one; returns the members of each."""
        await self._nodes(gangs, size * 3 // 2)
        return size

    @staticmethod
    async def _nodes(gangs, cores):
        for number in range(-(-cores // CORES)):
            await gangs.here.node(f"n{number}", cpu=str(CORES))

    async def create(self, gangs, name, size):
        """Create a gang with so many members."""
        if self._form == "PodGroup":
            await gangs.pod_group(name, size)
        await gangs.gang(name, size, form=self._form)

    async def tidy(self):
        """Remove what was prepared besides nodes."""


class Groups(Plain):
    """Two gangs each, which start together."""

    async def create(self, gangs, name, size):
        parts = [f"{name}-{one}" for one in ("x", "y")]
        listed = json.dumps([f"{gangs.here.namespace}/{part}" for part in parts])
        for part in parts:
            await gangs.gang(part, size // 2, settings={"groups": listed})


class Quota(Plain):
    """Gangs of one quota that has room for one of them; the nodes have room for both."""

    async def prepare(self, gangs, size):
        await self._nodes(gangs, size * 5 // 2)
        kind, name = resources.ELASTIC_QUOTAS, gangs.here.name("team")
        amounts = {"cpu": str(size + size // 2), "memory": "1Ti"}
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name, "namespace": gangs.here.namespace},
            "spec": {"min": amounts, "max": amounts},
        }
        await gangs.api.post(kind.path(gangs.here.namespace), body)

        async def known():
            return await gangs.system.knows(name)

        await raw.eventually(known, ganging.PATIENCE)
        self._delete = lambda: gangs.api.delete(kind.path(gangs.here.namespace, name))
        return size

    async def create(self, gangs, name, size):
        labels = {names.LABEL_QUOTA_NAME: gangs.here.name("team")}
        await gangs.gang(name, size, labels=labels)

    async def tidy(self):
        await self._delete()


class Devices(Plain):
    """Members that want all 8 GPUs of a node."""

    def __init__(self, share=1):
        """`share`: so many times fewer members than other gangs have."""
        super().__init__()
        self._share = share

    async def prepare(self, gangs, size):
        self._floor = device_floor.Floor(gangs.here, gangs.page)
        members = size // self._share
        suffixes = iter([f"gpus-{number}" for number in range(members * 3 // 2)])

        async def work():
            for suffix in suffixes:
                await self._floor.machine(suffix, "eight")

        await asyncio.gather(*(work() for _ in range(_TOGETHER)))
        return members

    async def create(self, gangs, name, size):
        await gangs.gang(name, size, requests={"cpu": "1", names.GPU: "800"})

    async def tidy(self):
        await self._floor.remove()


class Native(Plain):
    """Gangs of PodGroups of Kubernetes itself, whose members have no gate."""

    async def create(self, gangs, name, size):
        policy = {"gang": {"minCount": size}}
        body = {
            "apiVersion": NATIVE.api_version,
            "kind": NATIVE.kind,
            "metadata": {"name": name},
            "spec": {"schedulingPolicy": policy},
        }
        await gangs.api.post(NATIVE.path(gangs.here.namespace), body)
        gangs.also(NATIVE.path(gangs.here.namespace, name))
        group = {"podGroupName": name}
        for number in range(size):
            await gangs.here.pod(f"{name}-{number}", requests={"cpu": "1"}, schedulingGroup=group)


class Mixed(Plain):
    """A gang of Kubernetes itself beside one of ours."""

    def __init__(self, native):
        """`native`: how the names of the first one begin."""
        super().__init__()
        self._native = native

    async def create(self, gangs, name, size):
        chosen = Native() if name.startswith(self._native) else Plain()
        await chosen.create(gangs, name, size)


VARIANTS = {
    "annotations": Plain(),
    "labels": Plain("labels"),
    "PodGroups": Plain("PodGroup"),
    "gang groups": Groups(),
    "one quota": Quota(),
    "members with 8 GPUs": Devices(),
}
