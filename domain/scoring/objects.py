"""Pods and nodes with the fields that only score plug-ins read, to be decoded from the API server.

They extend `api.kubernetes.core`, so whatever takes a pod or a node takes these too.
"""

from typing import Any

from api.kubernetes import core


class ClaimSource(core.Wire, frozen=True, gc=False):
    """The PersistentVolumeClaim that a volume names."""

    claim_name: str = ""


class ImageSource(core.Wire, frozen=True, gc=False):
    """The image that a volume mounts."""

    reference: str = ""


class Volume(core.Wire, frozen=True, gc=False):
    """A volume of a pod, as far as it concerns scores."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None
    image: ImageSource | None = None


class PodSpec(core.PodSpec, frozen=True, gc=False):
    """What a pod asks for, with what concerns scores."""

    volumes: tuple[Volume, ...] = ()
    workload_ref: dict[str, Any] | None = None


class PodStatus(core.PodStatus, frozen=True, gc=False):
    """How a pod is doing, with what the kubelet granted to it as a whole."""

    allocated_resources: core.ResourceList | None = None
    resources: core.ResourceRequirements | None = None


class Pod(core.Pod, frozen=True, gc=False):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Image(core.Wire, frozen=True, gc=True, weakref=True):
    """An image that a node holds."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeStatus(core.NodeStatus, frozen=True, gc=False):
    """What a node offers and holds."""

    images: tuple[Image, ...] = ()


class Node(core.Node, frozen=True, gc=False):
    """A node."""

    status: NodeStatus = NodeStatus()
