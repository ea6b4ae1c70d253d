"""What the API server says of one pod, and the fence that makes a late Binding fail."""

import dataclasses
from typing import Any

import msgspec

from api import names, resources
from api.kubernetes import core
from extender.state import records
from kube.client import client as clients
from kube.client import errors
from kube.informers import store
from process.runtime import clock as clocks
from process.runtime import supervise


class Truth(msgspec.Struct, frozen=True, gc=False):
    """Where the API server says a pod is; no pod: it is gone or another one took its name."""

    pod: records.PodRecord | None
    version: str = ""
    """Its resource version; empty if that is not known."""

    def bound_to(self, node: str) -> bool:
        """Whether the pod is on this node."""
        return self.pod is not None and self.pod.node == node

    @property
    def fence(self) -> str:
        """Return the fence that stands before the pod."""
        return self.pod.fence if self.pod is not None else ""


GONE = Truth(None)


@dataclasses.dataclass(frozen=True, slots=True)
class PodAccess:
    """Reads single pods, and fences them; the caller does not wait for every repetition."""

    client: clients.Client
    projector: records.Projector
    clock: clocks.Clock
    seconds: float

    async def read(self, key: str, uid: str) -> Truth:
        """Ask where a pod is."""
        namespace, _, name = key.partition("/")
        try:
            async with supervise.deadline(self.clock, self.seconds):
                raw = await self.client.get(resources.PODS, name, namespace)
        except errors.NotFound:
            return GONE
        except TimeoutError as error:
            raise errors.Unreachable(f"pod {key}: no answer in time") from error
        return self._truth(key, uid, raw)

    async def fence(self, key: str, uid: str, attempt: str) -> Truth:
        """Move the pod's resource version: a Binding that is still on its way fails from now on.

        Every Binding of ours names the version of the pod that was checked. The answer says
        whether one was faster. What is patched has to be new, for a patch that changes nothing
        moves no version.
        """
        namespace, _, name = key.partition("/")
        patch = {"metadata": {"uid": uid, "annotations": {names.ANNOTATION_FENCE: attempt}}}
        try:
            async with supervise.deadline(self.clock, self.seconds):
                raw = await self.client.patch(resources.PODS, name, patch, namespace=namespace)
        except errors.NotFound:
            return GONE
        except errors.Conflict:
            # A patch without a version conflicts where the uid is another pod's.
            truth = await self.read(key, uid)
            if truth.pod is not None:
                raise
            return truth
        except TimeoutError as error:
            raise errors.Unreachable(f"pod {key}: no answer in time") from error
        return self._truth(key, uid, raw)

    def _truth(self, key: str, uid: str, raw: dict[str, Any]) -> Truth:
        try:
            pod = msgspec.convert(raw, core.Pod)
            record = self.projector.pod(pod)
        except store.UNREADABLE as error:
            raise errors.Malformed(f"pod {key}: {error}") from error
        if pod.metadata.uid != uid:
            return GONE
        return Truth(record, pod.metadata.resource_version)
