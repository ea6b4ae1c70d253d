"""Give pods devices that fit: filter nodes, prefer some, and choose the devices at the bind."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np

from api.koordinator import devices
from api.plugin_args import node as node_arguments
from domain.devices import (
    allocator,
    candidates,
    device_scores,
    gpu_memory,
    gpu_templates,
    inventory,
    numa_hints,
    pod_devices,
    requests,
)
from extender.framework import hints, protocols, row_memo, verdicts, views
from extender.plugins.device_share import (
    allocation,
    diagnosis,
    inspection,
    packing,
    selection,
    shapes,
    tracker,
    victims,
)
from extender.plugins.device_share.allocation import NAME, Wanted

NONE_OF: Final = tuple(
    verdicts.Status(candidates.insufficient(kind, final=True).reason) for kind in tracker.HAS
)
"""The statuses of nodes that have no device of a type."""
TOO_FEW: Final = {
    devices.GPU: verdicts.Status("Insufficient GPU Devices"),
    devices.RDMA: verdicts.Status(candidates.insufficient(devices.RDMA).reason),
    devices.FPGA: verdicts.Status(candidates.insufficient(devices.FPGA).reason),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Arguments:
    """What the plug-in is built from."""

    scoring: device_scores.Scoring
    least_fragmented: bool = False
    aligned: bool = True
    """Whether devices are aligned with NUMA nodes."""
    not_shared: frozenset[tuple[str, str]] = frozenset()
    """Vendors and models of GPUs that are given to one pod only."""
    matched: tuple[str, ...] = ("huawei.com/npu-core",)
    """Resources of which only templates give parts."""


def arguments(written: node_arguments.DeviceShareArgs) -> Arguments:
    """Return what complete arguments of a scheduler configuration say."""
    strategy = written.scoring_strategy
    assert strategy is not None
    return Arguments(
        device_scores.Scoring(
            tuple(
                (one.name, one.weight)
                for one in strategy.resources
                if one.name in requests.RESOURCES
            ),
            packs=strategy.type != "LeastAllocated",
        ),
        least_fragmented=strategy.type == "LeastFragmented",
        aligned=not written.disable_device_numa_topology_alignment,
        not_shared=frozenset(
            (one.vendor, one.model) for one in written.gpu_share_unsupported_models
        ),
        matched=written.gpu_shared_resource_templates_config.matched_resources,
    )


class DeviceShare(allocation.Codec, tracker.Tracker):
    """Filter by columns where these say everything, else by a trial allocation on each node."""

    name = NAME
    page = NAME
    collection, item = "nodeDeviceSummaries", "node"
    pod_labels = pod_devices.LABELS
    pod_annotations = pod_devices.ANNOTATIONS
    expires = False

    def __init__(self, arguments: Arguments) -> None:
        """Take the arguments of the configuration."""
        super().__init__(arguments.scoring, fragmentation_scored=arguments.least_fragmented)
        self._arguments = arguments
        self._selection = selection.Selection()
        self._packing = packing.Packing(self._selection)
        self._scores = row_memo.RowMemo()

    # -- PreFilter, Filter -----------------------------------------------------------------

    def pre_filter(self, pod: views.PodInfo, view: views.View) -> Wanted | verdicts.Status | None:
        """Read what the pod wants of devices; refuse what no node can serve."""
        least_fragmented = self._arguments.least_fragmented
        wanted = allocation.wanted(pod.requirements, scored=least_fragmented)
        if wanted is None:
            return None
        found = allocation.read(wanted.requests, wanted.inputs)
        if isinstance(found, requests.Fault):
            return verdicts.Status(found.reason)
        if found is None:
            return wanted
        return _with_templates(wanted, found, view, self._arguments.matched)

    def filter(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Verdict | None:
        """Refuse nodes without a type of device, and those that have too little of it."""
        del now
        asked = allocation.of(prepared)
        if asked is None:
            return None
        figures = view.gathered(NAME, rows)
        flags = figures[tracker.FLAGS]
        known = (flags & tracker.KNOWN) != 0
        codes = np.zeros(rows.size, dtype=np.int16)
        shape = self._shape(asked)
        statuses = [*NONE_OF]
        if shape is not None:
            statuses.append(TOO_FEW[shape.kind])
            judged = known & ((flags & _unclear(shape)) == 0)
            fits = shape.fits(figures)
            if shape.selects:
                fits &= self._selection.serves(allocation.hint(prepared), view, rows)
            codes[judged & ~fits] = len(statuses)
        for number, (kind, flag) in enumerate(tracker.HAS.items(), 1):
            if kind in asked.by_type:
                codes[known & ((flags & flag) == 0)] = number
        return verdicts.Verdict(codes, tuple(statuses))

    def needs_trial(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Flags:
        """Name the candidates of which the columns do not say everything."""
        asked = allocation.of(prepared)
        if asked is None:
            return np.zeros(rows.size, dtype=np.bool_)
        flags, shape = view.figures[NAME][tracker.FLAGS, rows], self._shape(asked)
        wanted = tracker.KNOWN if shape is None else _unclear(shape)
        found: verdicts.Flags = (flags & wanted) != 0
        return found

    def refusal(
        self, asked: pod_devices.PodDevices, node: inventory.NodeDevices
    ) -> verdicts.Status | None:
        """Return why a node cannot serve a pod."""
        choice = candidates.Choice(asked, node)
        found = allocator.unsuitable(choice, self._arguments.not_shared)
        if found is None:
            tried = allocator.allocate(choice)
            found = tried if isinstance(tried, candidates.Refusal) else None
        return verdicts.Status(found.reason) if found is not None else None

    def _shape(self, asked: pod_devices.PodDevices) -> shapes.Shape | None:
        if asked.shares_gpus and (asked.isolation or self._arguments.not_shared):
            return None
        return shapes.shape(asked)

    def shortage(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Shares:
        """Say what share of the devices is lacking."""
        del now
        asked = allocation.of(prepared)
        return diagnosis.shortage(asked, view.gathered(NAME, rows))

    def diagnose(
        self, prepared: Wanted, view: views.View, row: int, now: float
    ) -> verdicts.Diagnosis:
        """Show what the pod asks of each device, what the node has free, and who holds the rest."""
        del now
        asked, node = allocation.of(prepared), _node(view, row)
        if asked is None or node is None:
            return verdicts.Diagnosis("")
        return diagnosis.diagnosis(asked, node, view.names[row])

    # -- Score -------------------------------------------------------------------------------

    def score(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Score | None:
        """Prefer nodes by the strategy of the arguments."""
        del now
        if self._arguments.least_fragmented:
            return self._packing.score(prepared, view, rows)
        asked = allocation.of(prepared)
        if asked is None:
            return None
        scoring = self._arguments.scoring
        if shapes.sums_say_all(asked):
            values = shapes.scores(asked, scoring, view.gathered(NAME, rows))
        else:

            def scored(changed: verdicts.Rows) -> verdicts.Column:
                return np.array([self._scored(asked, view, row) for row in changed.tolist()])

            values = self._scores.get(prepared, view, rows, scored)
        return verdicts.Score(values.astype(np.int64), scale=True)

    def _scored(self, asked: pod_devices.PodDevices, view: views.View, row: int) -> int:
        node = _node(view, row)
        if node is None:
            return 0
        found = allocator.score(candidates.Choice(asked, node, self._arguments.scoring))
        return 0 if isinstance(found, candidates.Refusal) else found

    # -- NUMA hints, allocation ----------------------------------------------------------------

    def hints(
        self, prepared: Wanted, view: views.View, row: int
    ) -> Mapping[str, tuple[hints.NumaHint, ...]]:
        """Return from which NUMA nodes all devices could be given; the fewest are preferred."""
        asked, node = allocation.of(prepared), _node(view, row)
        if asked is None or node is None or not self._arguments.aligned:
            return {}
        found = numa_hints.hints(candidates.Choice(asked, node))
        if isinstance(found, candidates.Refusal):
            return {NAME: ()}
        return {
            kind: tuple(hints.NumaHint(one.mask, one.preferred, one.score) for one in known)
            for kind, known in found.items()
        }

    def allocate(
        self, prepared: Wanted, view: views.View, row: int, mask: int
    ) -> allocation.Devices | verdicts.Status | None:
        """Choose the devices; on a node that says nothing of devices the kubelet does."""
        asked, node = allocation.of(prepared), _node(view, row)
        if asked is None or node is None:
            return None
        numa = None
        if mask != hints.ANYWHERE and self._arguments.aligned:
            numa = frozenset(number for number in range(mask.bit_length()) if mask >> number & 1)
        first: tuple[int, ...] = ()
        if self._arguments.least_fragmented and shapes.shape(asked) is not None:
            first = self._packing.best_gpus(prepared, view, row)
        choice = candidates.Choice(
            asked, node, self._arguments.scoring, numa, first=first, reserving=True
        )
        found = allocator.unsuitable(choice, self._arguments.not_shared)
        given = found or allocator.allocate(choice)
        if isinstance(given, candidates.Refusal):
            return verdicts.Status(given.reason)
        return allocation.Devices(gpu_memory.completed(given, node))

    def reserve(
        self,
        pod: views.PodInfo,
        prepared: Wanted,
        view: views.View,
        row: int,
        grants: Mapping[str, msgspec.Struct],
    ) -> verdicts.Grant | None:
        """Say which devices were chosen, and why others were not."""
        del pod
        found = grants.get(NAME)
        if not isinstance(found, allocation.Devices):
            return None
        told = {
            kind: ",".join(str(one.minor) for one in granted)
            for kind, granted in found.by_type.items()
        }
        asked, node = allocation.of(prepared), _node(view, row)
        if asked is not None and node is not None:
            others = diagnosis.others(asked, node, found.by_type)
            told |= {f"{kind}Others": text for kind, text in others.items()}
        return verdicts.Grant(found, figures=told)

    # -- preemption, requeue -------------------------------------------------------------------

    def victims(
        self, prepared: Wanted, view: views.View, row: int
    ) -> verdicts.Victims | verdicts.Status:
        """Name the pods of lowest priority whose devices are enough."""
        asked, node = allocation.of(prepared), _node(view, row)
        if asked is None or node is None:
            return verdicts.Victims(())
        return victims.choose(self.refusal, asked, node, view.node(row).claims, prepared.priority)

    def could_help(self, prepared: Wanted | None, delta: views.Delta) -> bool:
        """Look again when devices are given back, change, or come with a node."""
        del prepared
        match delta:
            case views.ClaimDelta():
                return delta.before is not None and bool(tracker.held_by(delta.before))
            case views.ObjectDelta():
                return delta.kind in (views.DEVICE, views.DEVICES_ELSEWHERE, views.GPU_TEMPLATES)
            case views.NodeDelta(_, was, becomes):
                return was is None or becomes is None or was.labels != becomes.labels
            case _:
                return False

    # -- for people ----------------------------------------------------------------------------

    def inspect(self, facts: views.NodeInfo) -> Mapping[str, Any]:
        """Return the devices of a node, who holds what, and what cannot be true."""
        return inspection.inspected(self.node(facts)[1], facts)

    def listed(
        self, view: views.View, query: Mapping[str, str], pods: protocols.Pods
    ) -> Mapping[str, Any]:
        """Return the devices of every node that has some."""
        del query, pods
        flags = view.figures[NAME][tracker.FLAGS]
        rows = np.flatnonzero(view.known & (flags != 0)).tolist()
        return {view.names[row]: self.shown(view.node(row)) for row in rows}

    def named(
        self, name: str, view: views.View, query: Mapping[str, str], pods: protocols.Pods
    ) -> Mapping[str, Any] | None:
        """Return the devices of one node."""
        del query, pods
        row = view.rows.get(name)
        return None if row is None else self.shown(view.node(row))

    def shown(self, info: views.NodeInfo) -> Mapping[str, Any]:
        """Return the devices of a node in the shape of Koordinator's page."""
        return inspection.summary(self.node(info)[1], info)


def _unclear(shape: shapes.Shape) -> int:
    """Return the flags of nodes of which columns do not say everything."""
    return tracker.ODD | tracker.MIXED if shape.selects else tracker.ODD


def _node(view: views.View, row: int) -> inventory.NodeDevices | None:
    found = view.sparse(NAME, row)
    return found if isinstance(found, inventory.NodeDevices) else None


def _with_templates(
    wanted: Wanted, asked: pod_devices.PodDevices, view: views.View, matched: tuple[str, ...]
) -> Wanted | verdicts.Status:
    """Return what a pod wants with the templates that serve it, where templates give its GPUs."""
    known = view.cluster.get(NAME)
    if not isinstance(known, tracker.Cluster):
        return wanted
    found = gpu_templates.matching(known.templates, asked.gpu, matched)
    if found is None:
        return wanted
    if not found:
        return verdicts.Status(gpu_templates.NO_TEMPLATE.reason)
    return msgspec.structs.replace(wanted, templates=found)
