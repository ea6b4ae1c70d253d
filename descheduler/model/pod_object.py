"""Pods with the fields that only the descheduler reads, to be decoded from the API server.

They extend `api.kubernetes.core`, so whatever takes a pod takes these too.
"""

from typing import Any

from api.kubernetes import core
from domain.scoring import objects


class VolumeSource(core.Wire, frozen=True, gc=False):
    """Where a volume comes from, as far as it ties a pod to its node."""

    host_path: dict[str, Any] | None = None
    empty_dir: dict[str, Any] | None = None
    persistent_volume_claim: objects.ClaimSource | None = None


class Volume(VolumeSource, frozen=True, gc=False):
    """A volume of a pod; protobuf has its source as a part, JSON beside its name."""

    volume_source: VolumeSource | None = None

    @property
    def source(self) -> VolumeSource:
        """Return where it comes from, whichever way it was sent."""
        return self if self.volume_source is None else self.volume_source

    @property
    def ties_to_node(self) -> bool:
        """Whether what it holds may be lost or out of reach on another node."""
        found = self.source
        kinds = (found.host_path, found.empty_dir, found.persistent_volume_claim)
        return any(one is not None for one in kinds)


class PodSpec(core.PodSpec, frozen=True, gc=False):
    """What a pod asks for, with its volumes."""

    volumes: tuple[Volume, ...] = ()


class PodStatus(objects.PodStatus, frozen=True, gc=False):
    """How a pod is doing, with its ephemeral containers."""

    ephemeral_container_statuses: tuple[core.ContainerStatus, ...] = ()


class Pod(core.Pod, frozen=True, gc=False):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
