"""Give pods devices that fit: filter nodes, prefer some, and choose the devices at the bind."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np

from api.plugin_args import node as node_arguments
from domain import identity_memo
from domain.devices import inventory, plugin_annotations, pod_devices
from domain.devices.allocation import allocator, candidates, device_scores, numa_hints
from domain.devices.requests import gpu_memory, gpu_templates, requests
from extender.framework import protocols, verdicts, views
from extender.framework.nodes import hints, node_classes
from extender.plugins.device_share import (
    allocation,
    choices,
    columns,
    diagnosis,
    inspection,
    judgement,
    packing,
    reserved,
    selection,
    tracker,
)
from extender.plugins.device_share.allocation import NAME, Wanted

_MOST_READ: Final = 2048
"""Requirements of pods that are remembered with what was read of them."""


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
    adapted: bool = False
    """Whether pods get the annotations that device plug-ins of vendors read."""


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
        adapted=written.device_plugin_adaption,
    )


class DeviceShare(allocation.Codec, tracker.Tracker):
    """Filter by columns where these say everything, else by a trial allocation on each node."""

    name = NAME
    page = NAME
    collection, item, namespaced = "nodeDeviceSummaries", "node", False
    pod_labels = pod_devices.LABELS
    pod_annotations = pod_devices.ANNOTATIONS
    expires = False

    def __init__(self, arguments: Arguments) -> None:
        """Take the arguments of the configuration."""
        allocation.Codec.__init__(self, lambda pod: allocation.asked_by(self._read.get(pod).found))
        tracker.Tracker.__init__(
            self, arguments.scoring, fragmentation_scored=arguments.least_fragmented
        )
        self._arguments = arguments
        self._selection = selection.Selection()
        self._packing = packing.Packing(self._selection)
        self._judgement = judgement.Judgement(
            self._selection, arguments.not_shared, arguments.scoring
        )
        scored, matched = arguments.least_fragmented, arguments.matched
        self._read = identity_memo.IdentityMemo(
            lambda one: allocation.prepared(one, scored=scored, matched=matched), _MOST_READ
        )
        self._choices = choices.Choices()
        self._tried_scores = node_classes.Results()

    # -- PreFilter, Filter -----------------------------------------------------------------

    def pre_filter(self, pod: views.PodInfo, view: views.View) -> Wanted | verdicts.Status | None:
        """Read what the pod wants of devices; refuse what no node can serve."""
        found, sliced = self._read.get(pod.requirements)
        if sliced is None or not isinstance(found, Wanted):
            return found
        return _with_templates(found, sliced, view, self._arguments.matched)

    def filter(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Verdict | None:
        """Refuse nodes without a type of device, and those that have too little of it."""
        del now
        if not prepared.requests:
            return None
        codes = self._judgement.codes(prepared, view, rows)
        return None if codes is None else verdicts.Verdict(codes, judgement.STATUSES)

    def passes_all(self, prepared: Wanted, view: views.View, now: float) -> bool:
        """Whether columns say of every node that it has what the pod wants."""
        del now
        return not prepared.requests or self._judgement.passes_all(prepared, view)

    def needs_trial(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Flags | None:
        """Name the candidates of which the columns do not say everything."""
        if not prepared.requests:
            return None
        if self._arguments.adapted:
            # Columns do not know what the device plug-in of a node can serve.
            return np.ones(rows.size, dtype=np.bool_)
        return self._judgement.open(prepared, view, rows)

    def alike(self, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Return a digest of all that the allocation of any pod depends on, by candidate."""
        found: verdicts.Column = view.figures[NAME][columns.ALIKE, rows]
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
        if not prepared.requests:
            return None
        values = self._judgement.scores(prepared, view, rows)
        if values is None:
            values = self._tried(prepared, view, rows)
        return verdicts.Score(values, scale=True)

    def _tried(self, prepared: Wanted, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Return the scores of candidates by the devices of each."""
        asked = allocation.of(prepared)
        assert asked is not None
        return self._tried_scores.get(
            prepared, view, rows, (self.alike, lambda row: self._scored(asked, view, row))
        )

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
        node = _node(view, row)
        if node is None or not prepared.requests:
            return None
        first: tuple[int, ...] = ()
        if self._arguments.least_fragmented:
            first = self._packing.best_gpus(prepared, view, row)
        known = None if first else choices.key(prepared, view, row, mask)
        before = None if known is None else self._choices.get(known, node)
        if before is not None:
            found: allocation.Devices | verdicts.Status = allocation.Devices(before)
        else:
            choice = _choice(prepared, (node, mask), first, self._arguments)
            found = _allocated(
                choice, self._arguments.not_shared, view.lent, (self._choices, known)
            )
        if not self._arguments.adapted or isinstance(found, verdicts.Status):
            return found
        return _unsupported(found, node) or found

    def reserve(
        self,
        pod: views.PodInfo,
        prepared: Wanted,
        view: views.View,
        row: int,
        grants: Mapping[str, msgspec.Struct],
    ) -> verdicts.Grant | verdicts.Status | None:
        """Say which devices were chosen, and why others were not."""
        del pod
        found = grants.get(NAME)
        if not isinstance(found, allocation.Devices):
            return None
        told = self._choices.told(
            choices.key(prepared, view, row, hints.ANYWHERE),
            found.by_type,
            lambda: _others(allocation.of(prepared), _node(view, row), found.by_type),
        )
        node = _node(view, row) if self._arguments.adapted else None
        return verdicts.Grant(found, figures=told) if node is None else _granted(found, told, node)

    # -- preemption, requeue -------------------------------------------------------------------

    def victims(
        self, prepared: Wanted, view: views.View, row: int
    ) -> verdicts.Victims | verdicts.Status:
        """Name the pods that hold devices of the types asked for, or for which some are kept."""
        asked = allocation.of(prepared)
        wanted = asked.by_type.keys() if asked is not None else frozenset()
        held = ((claim, tracker.held_by(claim) or {}) for claim in view.node(row).claims)
        kept = views.ClaimKind.NOMINATED
        return verdicts.Victims(
            tuple(c.id for c, by_type in held if c.kind is kept or not wanted.isdisjoint(by_type))
        )

    def could_help(self, prepared: Wanted | None, delta: views.Delta) -> bool:
        """Look again when devices are given back, change, or come with a node."""
        del prepared
        match delta:
            case views.ClaimDelta():
                return delta.before is not None and tracker.keeps(delta.before)
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
        flags = view.figures[NAME][columns.FLAGS]
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


def _node(view: views.View, row: int) -> inventory.NodeDevices | None:
    found = view.sparse(NAME, row)
    if not isinstance(found, inventory.NodeDevices):
        return None
    return found if view.lent is None else reserved.shown(found, view.lent)


def _choice(
    prepared: Wanted,
    where: tuple[inventory.NodeDevices, int],
    first: tuple[int, ...],
    arguments: Arguments,
) -> candidates.Choice:
    """Return the question which devices of a node, and of which NUMA nodes, a pod gets."""
    asked, (node, mask) = allocation.of(prepared), where
    assert asked is not None
    numa = None
    if mask != hints.ANYWHERE and arguments.aligned:
        numa = frozenset(number for number in range(mask.bit_length()) if mask >> number & 1)
    return candidates.Choice(asked, node, arguments.scoring, numa, first=first, reserving=True)


def _allocated(
    choice: candidates.Choice,
    not_shared: frozenset[tuple[str, str]],
    lent: views.Lent | None,
    remembered: tuple[choices.Choices, choices.Key | None],
) -> allocation.Devices | verdicts.Status:
    """Choose devices: of what is kept for the pod first, and others to fill up."""
    found = allocator.unsuitable(choice, not_shared) or reserved.allocate(choice, lent)
    if isinstance(found, candidates.Refusal):
        return verdicts.Status(found.reason)
    recorded = gpu_memory.completed(found, choice.node)
    kept, known = remembered
    if known is not None:
        kept.put(known, found, recorded)
    return allocation.Devices(recorded)


def _others(
    asked: pod_devices.PodDevices | None,
    node: inventory.NodeDevices | None,
    given: inventory.Allocation,
) -> Mapping[str, str]:
    """Say by type why other devices were not chosen."""
    if asked is None or node is None:
        return {}
    return {f"{kind}Others": text for kind, text in diagnosis.others(asked, node, given).items()}


def _unsupported(found: allocation.Devices, node: inventory.NodeDevices) -> verdicts.Status | None:
    """Return why the vendor's device plug-in of a node cannot serve these devices."""
    notes = plugin_annotations.annotations(found.by_type, node.inventory.labels)
    if isinstance(notes, plugin_annotations.Unsupported):
        return verdicts.Status(notes.reason)
    return None


def _granted(
    found: allocation.Devices, told: Mapping[str, str], node: inventory.NodeDevices
) -> verdicts.Grant | verdicts.Status:
    """Grant devices with the annotations that the vendor's device plug-in of a node reads."""
    notes = plugin_annotations.annotations(found.by_type, node.inventory.labels)
    if isinstance(notes, plugin_annotations.Unsupported):
        return verdicts.Status(notes.reason)
    return verdicts.Grant(found, figures=told, annotations=notes.texts, bind_times=notes.bind_times)


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
