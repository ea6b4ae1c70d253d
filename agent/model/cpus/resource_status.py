"""On which cpus and NUMA nodes a scheduler placed a pod, as `resource-status` says. Pure."""

from collections.abc import Mapping

import msgspec

from agent.model import annotations
from api import names
from api.kubernetes import core
from api.wire import quantity
from domain.cpus import cpulists


class StatusError(ValueError):
    """An annotation that cannot be honoured; the text names it and what is wrong."""


class Placement(msgspec.Struct, frozen=True):
    """What the scheduler decided for one pod."""

    cpuset: str = ""
    nodes: tuple[int, ...] = ()
    """NUMA nodes on which it was given cpu."""


class _NumaResources(msgspec.Struct, frozen=True):
    node: annotations.Int64 = 0
    resources: core.ResourceList = {}


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    cpuset: str = ""
    numa_node_resources: list[_NumaResources] | None = None


def read(written: str | None) -> Placement:
    """Read what the scheduler wrote on a pod; a StatusError says what is wrong."""
    try:
        return _REMEMBERED(written or "")
    except annotations.ReadError as error:
        raise StatusError(str(error)) from error


def of_pod(on: Mapping[str, str]) -> tuple[Placement, str]:
    """Return where a pod was placed by its annotations, nowhere with a reason if unreadable."""
    try:
        return read(on.get(names.ANNOTATION_RESOURCE_STATUS)), ""
    except StatusError as error:
        return Placement(), str(error)


def _placement(status: _Status) -> Placement:
    cpulists.parse(status.cpuset)
    found = [
        one.node
        for one in status.numa_node_resources or ()
        if any(
            quantity.amount(name, one.resources[name]) > 0
            for name in (names.CPU, names.BATCH_CPU)
            if name in one.resources
        )
    ]
    return Placement(status.cpuset, tuple(found))


_REMEMBERED = annotations.Reader(names.ANNOTATION_RESOURCE_STATUS, _Status, _placement)
