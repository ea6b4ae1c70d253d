"""StateTracker: what is free of the devices of every node, as columns and as a value."""

import operator
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from api import names
from domain.devices import inventory
from domain.devices.allocation import allocator, candidates, device_scores
from domain.devices.requests import gpu_templates, requests
from extender.framework import views
from extender.plugins.device_share import allocation, classes, columns
from extender.plugins.device_share.allocation import NAME

MOST: Final = 1 << 15
"""Nodes that are remembered; more than a cluster has."""
NO_TEMPLATES: Final = gpu_templates.Templates()


class Cluster(msgspec.Struct, frozen=True):
    """What is kept of the cluster as a whole."""

    counted: classes.Classes | None = None
    """The classes of tasks, where they matter."""
    templates: gpu_templates.Templates = NO_TEMPLATES
    """By which NPUs are sliced."""


class _Seen(NamedTuple):
    """One node as it was when its figures were worked out last."""

    told: tuple[Any, Any]
    """Its Device, and which devices are held elsewhere."""
    held: tuple[inventory.Allocation, ...]
    layout: columns.Layout
    node: inventory.NodeDevices
    figures: tuple[int, ...]


class Tracker:
    """Figures, a sparse value and, where fragmentation is scored, the classes of tasks."""

    name = NAME

    def __init__(self, scoring: device_scores.Scoring, *, fragmentation_scored: bool) -> None:
        """Keep what is scored of every node."""
        self._weighed = tuple(name for name, _ in scoring.weights)
        self._last: dict[str, _Seen] = {}
        self._counting = fragmentation_scored
        self.columns = columns.SUMS + 2 * len(self._weighed)
        self._nothing = (0,) * self.columns
        waiting = (views.UNSCHEDULED_POD,) if fragmentation_scored else ()
        self.kinds = (views.DEVICE, views.DEVICES_ELSEWHERE, views.GPU_TEMPLATES, *waiting)

    def needs(self, value: object | None) -> bool:
        """Want every Device, and pods that wait where they are counted."""
        del value
        return True

    def node(self, info: views.NodeInfo) -> tuple[tuple[int, ...], inventory.NodeDevices | None]:
        """Return what is free of the devices of one node."""
        record = info.objects.get((views.DEVICE, info.node.name))
        # Most claims hold nothing beside what they request, which is cheaper to see from here.
        given = [claim for claim in info.claims if claim.allocations]
        held = [found for claim in given if (found := held_by(claim))]
        if record is None and not held:
            return self._nothing, None
        told = (record, info.objects.get((views.DEVICES_ELSEWHERE, info.node.name)))
        seen = self._seen(info.node, told, held)
        kept = self._kept_for_later(info, seen.node, held)
        if kept is seen.node:
            return seen.figures, kept
        return columns.of(kept, seen.layout, digested=self._counting), kept

    def _seen(
        self, node: views.NodeRecord, told: tuple[Any, Any], held: Sequence[inventory.Allocation]
    ) -> _Seen:
        """Return a node with what its pods hold, worked out from how it was before."""
        last = self._last.get(node.name)
        if (
            last is None
            or last.told[0] is not told[0]
            or last.told[1] is not told[1]
            or last.node.labels != node.labels
        ):
            last = self._unused(node, told)
        if len(last.held) > len(held) or not all(map(operator.eq, last.held, held)):
            last = self._unused(node, told, last.layout)
        if more := held[len(last.held) :]:
            becomes = last.node.plus(more)
            before, touched = (last.figures, last.node), _touched(more)
            figures = columns.changed(
                before, last.layout, becomes, touched, digested=self._counting
            )
            last = _Seen(told, tuple(held), last.layout, becomes, figures)
        if len(self._last) >= MOST:
            self._last.clear()
        self._last[node.name] = last
        return last

    def _unused(
        self, node: views.NodeRecord, told: tuple[Any, Any], known: columns.Layout | None = None
    ) -> _Seen:
        """Return a node of which no pod holds anything."""
        record, elsewhere = told
        found = record if record is not None else inventory.NOTHING
        if elsewhere is not None:
            found = inventory.without(found, elsewhere)
        layout = known if known is not None else columns.layout(found, node.labels, self._weighed)
        unused = inventory.NodeDevices.of(found, inventory.Uses(), node.labels)
        return _Seen(told, (), layout, unused, columns.of(unused, layout, digested=self._counting))

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


@views.PodRequirements.remembered(4096)
def class_of(requirements: views.PodRequirements) -> classes.Class:
    """Return the class of tasks that a pod belongs to."""
    found = allocation.wanted(requirements, scored=True)
    assert found is not None
    assert found.task is not None
    return found.task, dict(found.inputs).get(names.ANNOTATION_DEVICE_HINT, "")


def _touched(more: Sequence[inventory.Allocation]) -> dict[str, set[int]]:
    """Return the devices, by type and minor, of which something is held."""
    found: dict[str, set[int]] = {}
    for given in more:
        for kind, granted in given.items():
            found.setdefault(kind, set()).update([one.minor for one in granted])
    return found


def held_by(claim: views.Claim) -> inventory.Allocation | None:
    """Return the devices of a claim."""
    found = claim.allocations.get(NAME)
    return found.by_type if isinstance(found, allocation.Devices) else None


def keeps(claim: views.Claim) -> bool:
    """Whether devices may be free once a claim ends: some are kept for nominated pods too."""
    return claim.kind is views.ClaimKind.NOMINATED or bool(held_by(claim))
