"""Looking at all nodes at once: which of them have to be written, and when to look again.

Whoever has news is looked at one by one afterwards, so that every write has its sentence.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from api import names
from domain import accelerators, amplification, normalization
from kube import store
from manager import cluster, columns, demand, inventory, lent, strategy, table, views

Since = Callable[[str], float | None]
"""Tells how many seconds ago a node was written; None if it never was."""
_OWN_SETTINGS: Final = frozenset({*cluster.LABELS, names.LABEL_CPU_NORMALIZATION})


@dataclasses.dataclass(frozen=True, slots=True)
class Looks:
    """What a look at all nodes found."""

    now: tuple[str, ...]
    """Nodes that have news, or may have, and are to be looked at one by one."""
    later: tuple[tuple[str, float], ...]
    """All others that lend something, and in how many seconds to look at them again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """Everything that was calculated for the nodes of one look."""

    nodes: Sequence[views.Node]
    lends: columns.Bools
    calculated: columns.Ints
    """What is lent: cpu and memory for batch pods, then for mid pods."""
    offered: columns.Ints
    """What is to stand on the nodes because of that; MISSING for nothing."""
    origin: columns.Ints
    parts: columns.Zones
    zones: columns.Ints
    """What is to stand at the zones; two rows."""
    nodes_columns: columns.Nodes
    rules: columns.Rules
    marks: columns.Bools
    """Nodes that have to be looked at one by one for other reasons."""


class Sweep:
    """Rows for all nodes and pods, and how to look at them."""

    def __init__(
        self,
        nodes: store.Store[views.Node],
        metrics: store.Store[views.Metric],
        pods: store.Store[views.Pod],
        topologies: store.Store[inventory.Topology],
        devices: store.Store[accelerators.Inventory],
    ) -> None:
        self.demands = demand.Demands(pods, metrics)
        self._topologies = topologies
        self._devices = devices
        self.nodes = table.NodeTable(nodes, metrics, topologies)
        self.pods = table.PodTable(self.demands, pods, metrics)

    def picture(self, settings: cluster.ClusterSettings, now: float) -> Picture:
        """Calculate what all nodes lend."""
        rows, nodes = self.nodes.present()
        there = self.nodes.chosen(rows)
        given, marks, ratio = self._said(settings, nodes)
        parts = self.nodes.zones(rows.tolist())
        pods = self._pods(nodes, parts)
        held = columns.demand(pods, len(nodes))
        calculated = np.concatenate(
            (columns.batch(there, held, given.rules), columns.mid(there, held, given.rules))
        )
        origin = calculated[:2].copy()
        origin[0] = columns.faster(origin[0], ratio)
        offered = np.concatenate((np.maximum(origin - there.taken, 0), calculated[2:]))
        lends = given.enabled & (now <= there.updated_at + given.rules.degrade)
        offered[:, ~lends] = columns.MISSING
        return Picture(
            nodes=nodes,
            lends=lends,
            calculated=calculated,
            offered=offered,
            origin=np.where(lends, origin, 0),
            parts=parts,
            zones=columns.in_zones(there, parts, pods, given.rules, ratio),
            nodes_columns=there,
            rules=given.rules,
            marks=marks,
        )

    def look(self, settings: cluster.ClusterSettings, now: float, since: Since) -> Looks:
        """Find the nodes that have to be looked at now, and when to look at the others."""
        picture = self.picture(settings, now)
        ago = np.array([_nan(since(node.name)) for node in picture.nodes], dtype=np.float64)
        # Who was never written by this process is due, as is who was not written for long.
        due = ~(ago < picture.rules.refresh)
        changed, small = _changed(picture, due)
        wanted = changed | picture.marks
        rest = picture.nodes_columns.updated_at + picture.rules.degrade - now + 1
        rest = np.where(small, np.fmin(rest, picture.rules.refresh - ago), rest)
        later = ~wanted & (picture.lends | small)
        known = [node.name for node in picture.nodes]
        return Looks(
            tuple(known[at] for at in np.flatnonzero(wanted).tolist()),
            tuple((known[at], float(rest[at])) for at in np.flatnonzero(later).tolist()),
        )

    def _pods(self, nodes: Sequence[views.Node], parts: columns.Zones) -> columns.Pods:
        index = {node.name: at for at, node in enumerate(nodes)}
        order = np.full(self.pods.nodes.used + 1, -1, dtype=np.int64)
        for name, row in self.pods.nodes.by_name.items():
            order[row] = index.get(name, -1)
        many = np.bincount(parts.node, minlength=len(nodes))
        return self.pods.chosen(order, np.cumsum(many) - many, many)

    def _said(
        self, settings: cluster.ClusterSettings, nodes: Sequence[views.Node]
    ) -> tuple["_Given", columns.Bools, columns.Floats]:
        """Read what is set for each node, and what it says about its processors because of it."""
        readers = _Readers(settings)
        marks = np.zeros(len(nodes), dtype=np.bool_)
        ratio = np.ones(len(nodes), dtype=np.float64)
        index = np.zeros(len(nodes), dtype=np.int64)
        for at, node in enumerate(nodes):
            number, rules, normal, ampl = readers.of(node)
            index[at] = number
            enabled = readers.on and rules.enable
            there = self._topologies.get(node.name)
            said = readers.said(node, there, normal, ampl) if enabled else _SILENT
            ratio[at] = said.ratio
            marks[at] = (
                node.annotations.get(names.ANNOTATION_AMPLIFICATION) != said.amplification
                or (said.text and _is_news(node, said.text))
                or said.problem
                or (enabled and self._has_devices(node))
            )
        enabled_all = np.array(
            [readers.on and rules.enable for rules in readers.distinct], np.bool_
        )
        given = _Given(columns.rules(readers.distinct, index), enabled_all[index])
        return given, marks, ratio

    def _has_devices(self, node: views.Node) -> bool:
        if self._devices.get(node.name) is not None:
            return True
        return any(name in part for part in node.published for name in accelerators.RESOURCES)


def _nan(value: float | None) -> float:
    return np.nan if value is None else value


def _is_news(node: views.Node, text: str) -> bool:
    return normalization.is_news(node.annotations.get(names.ANNOTATION_CPU_NORMALIZATION), text)


def _changed(picture: Picture, due: columns.Bools) -> tuple[columns.Bools, columns.Bools]:
    """Return which nodes have news, and which have changed too little for that."""
    there = picture.nodes_columns
    wanted = np.concatenate((picture.offered, picture.offered))
    threshold = picture.rules.difference
    news = columns.differs(there.published, wanted, threshold).any(axis=0)
    small = columns.differs(there.published, wanted, 0.0).any(axis=0)
    # A node that never lent is not told that it lends nothing.
    lent = picture.lends | (there.published[[0, 1, 4, 5]] != columns.MISSING).any(axis=0)
    small = small | (lent & (there.origin != picture.origin).any(axis=0))
    parts = picture.parts
    offers = np.repeat(picture.zones, len(inventory.SIDES), axis=0)
    shown = picture.lends[parts.node]
    shares: tuple[columns.Floats | float, ...] = (threshold[parts.node], 0.0)
    for flags, share in zip((news, small), shares, strict=True):
        found = columns.differs(parts.published, offers, share).any(axis=0) & shown
        np.put(flags, parts.node[found], True)
    return news | (small & due), small


@dataclasses.dataclass(frozen=True, slots=True)
class _Given:
    """What is set for each node."""

    rules: columns.Rules
    enabled: columns.Bools


@dataclasses.dataclass(frozen=True, slots=True)
class _Said:
    """What a node is to say about its processors; an empty text leaves the ratio alone."""

    text: str
    ratio: float
    amplification: str | None
    problem: bool = False
    """Whether there is something to tell."""


_SILENT: Final = _Said("", 1.0, None)


class _Readers:
    """Reads settings once for all nodes that they hold on alike."""

    def __init__(self, settings: cluster.ClusterSettings) -> None:
        self._settings = settings
        self.on = settings.colocation_enabled
        self.distinct: list[strategy.Strategy] = []
        self._numbers: dict[int, int] = {}
        self._said: dict[Any, _Said] = {}
        self._alike = not any(section.entries for section in settings.sections.values())
        self._common: _Settings | None = None

    def of(self, node: views.Node) -> "_Settings":
        """Return what is set for a node, and the number of its strategy."""
        own = names.ANNOTATION_COLOCATION_STRATEGY in node.annotations
        own = own or not _OWN_SETTINGS.isdisjoint(node.labels)
        if self._alike and not own:
            if self._common is None:
                self._common = self._read(node)
            return self._common
        return self._read(node)

    def _read(self, node: views.Node) -> "_Settings":
        given = self._settings
        rules = given.rules(node.labels, node.annotations)
        number = self._numbers.setdefault(id(rules), len(self.distinct))
        if number == len(self.distinct):
            # Kept in the list, so that nothing else gets its identity.
            self.distinct.append(rules)
        return number, rules, given.normalization(node.labels), given.amplification(node.labels)

    def said(
        self,
        node: views.Node,
        there: inventory.Topology | None,
        normal: strategy.Normalization | None,
        ampl: strategy.Amplification | None,
    ) -> _Said:
        """Return what a node is to say about its processors."""
        processors = None if there is None else there.processors
        label = node.labels.get(names.LABEL_CPU_NORMALIZATION)
        before = node.annotations.get(names.ANNOTATION_CPU_NORMALIZATION, "")
        key = (id(normal), id(ampl), label, before, id(processors))
        known = self._said.get(key)
        if known is None:
            found = normalization.Result(problem=lent.UNREAD)
            if normal is not None:
                found = normalization.settled(
                    normal.enable, normal.default, normal.models, node.labels, processors
                )
            ratio = normalization.ratio_of(found.text or before)
            factors = amplification.Ratios(problem=lent.UNREAD)
            if ampl is not None:
                factors = amplification.ratios(ampl.enable, ampl.ratios, ratio)
            problem = bool(found.problem or factors.problem)
            known = _Said(found.text, ratio, factors.text or None, problem)
            self._said[key] = known
        return known


_Settings = tuple[
    int, strategy.Strategy, strategy.Normalization | None, strategy.Amplification | None
]
