"""StateTracker: what is free of the devices of every node, as columns and as a value."""

import functools
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from api import names
from api.koordinator import devices
from domain.devices import (
    allocator,
    candidates,
    device_scores,
    gpu_templates,
    inventory,
    partitions,
    requests,
)
from extender.framework import views
from extender.plugins.device_share import allocation, classes
from extender.plugins.device_share.allocation import NAME

GPUS: Final = 16
"""GPUs that have columns; nodes with more are looked at one by one."""
FLAGS, LABELS, DIGEST, RDMA, FPGA = 0, 1, 2, 3, 4
CORE, RATIO, MEMORY = 5, 5 + GPUS, 5 + 2 * GPUS
SUMS: Final = 5 + 3 * GPUS
"""The columns: flags, a digest of the labels of GPUs and one of all that is free of them, the most
that is free of one adapter, what is free of every GPU, and from here on two for every resource that
is scored, total and free."""
KNOWN, HAS_GPU, HAS_RDMA, HAS_FPGA, ODD, MIXED = 1, 2, 4, 8, 16, 32
"""The flags: the node has devices, it has some of a type, its GPUs are looked at one by one, its
GPUs do not all carry the same labels."""
HAS: Final[Mapping[str, int]] = {
    devices.GPU: HAS_GPU,
    devices.RDMA: HAS_RDMA,
    devices.FPGA: HAS_FPGA,
}
UNLISTED: Final = 1 << 53
"""Stands for what a device does not list, which is not checked."""
NO_DEVICE: Final = -1


NO_TEMPLATES: Final = gpu_templates.Templates()


class Cluster(msgspec.Struct, frozen=True):
    """What is kept of the cluster as a whole."""

    counted: classes.Classes | None = None
    """The classes of tasks, where they matter."""
    templates: gpu_templates.Templates = NO_TEMPLATES
    """By which NPUs are sliced."""


class Tracker:
    """Figures, a sparse value and, where fragmentation is scored, the classes of tasks."""

    name = NAME

    def __init__(self, scoring: device_scores.Scoring, *, fragmentation_scored: bool) -> None:
        """Keep what is scored of every node."""
        self._weighed = tuple(name for name, _ in scoring.weights)
        self._counting = fragmentation_scored
        self.columns = SUMS + 2 * len(self._weighed)
        waiting = (views.UNSCHEDULED_POD,) if fragmentation_scored else ()
        self.kinds = (views.DEVICE, views.DEVICES_ELSEWHERE, views.GPU_TEMPLATES, *waiting)

    def needs(self, value: object | None) -> bool:
        """Want every Device, and pods that wait where they are counted."""
        del value
        return True

    def node(self, info: views.NodeInfo) -> tuple[tuple[int, ...], inventory.NodeDevices | None]:
        """Return what is free of the devices of one node."""
        record = info.objects.get((views.DEVICE, info.node.name))
        held = [found for claim in info.claims if (found := held_by(claim))]
        if record is None and not held:
            return (0,) * self.columns, None
        known = record if record is not None else inventory.NOTHING
        elsewhere = info.objects.get((views.DEVICES_ELSEWHERE, info.node.name))
        if elsewhere is not None:
            known = inventory.without(known, elsewhere)
        node = inventory.NodeDevices.of(known, inventory.Uses.of(held), info.node.labels)
        node = self._kept_for_later(info, node, held)
        return self._figures(node), node

    def _kept_for_later(
        self,
        info: views.NodeInfo,
        node: inventory.NodeDevices,
        held: Sequence[inventory.Allocation],
    ) -> inventory.NodeDevices:
        """Take away what the pods that are expected on the node will be given."""
        for claim in info.claims:
            if claim.kind is not views.ClaimKind.NOMINATED or held_by(claim):
                continue
            prepared = allocation.wanted(claim.pod.requirements)
            asked = prepared and allocation.read(prepared.requests, prepared.inputs)
            if not asked or isinstance(asked, requests.Fault):
                continue
            found = allocator.allocate(candidates.Choice(asked, node, reserving=True))
            if not isinstance(found, candidates.Refusal):
                held = [*held, found]
                uses = inventory.Uses.of(held)
                node = inventory.NodeDevices.of(node.inventory, uses, node.labels)
        return node

    def _figures(self, node: inventory.NodeDevices) -> tuple[int, ...]:
        figures = [0] * self.columns
        figures[FLAGS] = _flags(node)
        gpus = node.inventory.devices.get(devices.GPU, {})
        figures[LABELS] = digest(gpus)
        figures[RDMA] = _most(node, devices.RDMA, names.RDMA)
        figures[FPGA] = _most(node, devices.FPGA, names.FPGA)
        figures[CORE:SUMS] = [NO_DEVICE] * (SUMS - CORE)
        free = node.free.get(devices.GPU, {})
        for place, minor in enumerate(sorted(gpus)[:GPUS]):
            if not any(gpus[minor].total.values()):
                continue
            for column, name in zip((CORE, RATIO, MEMORY), _OF_GPUS, strict=True):
                figures[column + place] = free[minor].get(name, UNLISTED)
        for place, name in enumerate(self._weighed):
            column = SUMS + 2 * place
            figures[column], figures[column + 1] = _sums(node, name)
        figures[DIGEST] = zlib.crc32(repr((figures[LABELS], figures[CORE:SUMS])).encode())
        return tuple(figures)

    # -- classes of tasks --------------------------------------------------------------------

    def start(self) -> Cluster:
        """Return what is known of an empty cluster."""
        return Cluster(classes.Classes() if self._counting else None)

    def cluster(self, old: Cluster, delta: views.Delta) -> Cluster:
        """Take in templates of NPUs, and a pod that came, was placed, or went."""
        if isinstance(delta, views.ObjectDelta) and delta.kind == views.GPU_TEMPLATES:
            found = delta.after
            known = found if isinstance(found, gpu_templates.Templates) else NO_TEMPLATES
            return msgspec.structs.replace(old, templates=known)
        if old.counted is None:
            return old
        counted = self._counted(old.counted, delta)
        return old if counted is old.counted else msgspec.structs.replace(old, counted=counted)

    @staticmethod
    def _counted(old: classes.Classes, delta: views.Delta) -> classes.Classes:
        before = after = None
        if isinstance(delta, views.ObjectDelta) and delta.kind == views.UNSCHEDULED_POD:
            before, after = delta.before, delta.after
        elif isinstance(delta, views.ClaimDelta):
            before = delta.before and delta.before.pod
            after = delta.after and delta.after.pod
        if before is None and after is None:
            return old
        counted = old
        was, becomes = (
            class_of(pod.requirements) if isinstance(pod, views.PodRecord) else None
            for pod in (before, after)
        )
        if was == becomes:
            return old
        for kind, by in ((was, -1), (becomes, 1)):
            counted = counted if kind is None else counted.changed(kind, by)
        return counted


_OF_GPUS: Final = (names.GPU_CORE, names.GPU_MEMORY_RATIO, names.GPU_MEMORY)


@functools.lru_cache(maxsize=4096)
def class_of(requirements: views.PodRequirements) -> classes.Class:
    """Return the class of tasks that a pod belongs to."""
    found = allocation.wanted(requirements, scored=True)
    assert found is not None
    assert found.task is not None
    return found.task, dict(found.inputs).get(names.ANNOTATION_DEVICE_HINT, "")


def held_by(claim: views.Claim) -> inventory.Allocation | None:
    """Return the devices of a claim."""
    found = claim.allocations.get(NAME)
    return found.by_type if isinstance(found, allocation.Devices) else None


def digest(gpus: inventory.ByMinor) -> int:
    """Return a number that is the same for nodes whose GPUs carry the same labels."""
    marks = sorted({tuple(sorted(one.labels.items())) for one in gpus.values()})
    return zlib.crc32(repr(marks).encode())


def _flags(node: inventory.NodeDevices) -> int:
    flags = KNOWN
    for kind, flag in HAS.items():
        if node.inventory.devices.get(kind):
            flags |= flag
    gpus = list(node.inventory.devices.get(devices.GPU, {}).values())
    if any(one.labels != gpus[0].labels for one in gpus):
        flags |= MIXED
    return flags | ODD if len(gpus) > GPUS or partitions.required(node) else flags


def _most(node: inventory.NodeDevices, kind: str, name: str) -> int:
    """Return the most that is free of one device of a type."""
    known = node.inventory.devices.get(kind, {})
    healthy = [minor for minor, one in known.items() if any(one.total.values())]
    return max((node.free[kind][minor].get(name, UNLISTED) for minor in healthy), default=-1)


def _sums(node: inventory.NodeDevices, name: str) -> tuple[int, int]:
    """Return how much there is and how much is free of a resource; both 0 of a type used up."""
    kind = next(kind for kind, known in requests.NAMES.items() if name in known)
    free = node.free.get(kind, {})
    if not any(any(amounts.values()) for amounts in free.values()):
        return 0, 0
    total = node.inventory.devices[kind]
    return (
        sum(one.total.get(name, 0) for one in total.values()),
        sum(amounts.get(name, 0) for amounts in free.values()),
    )
