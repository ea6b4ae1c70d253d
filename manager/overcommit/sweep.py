"""Looking at all nodes at once: which of them have to be written, and when to look again.

Nodes with news are looked at one by one afterwards, so that every write has its sentence.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from api import names
from domain.devices.requests import accelerators
from domain.lending import amplification, normalization
from kube.informers import store
from manager.cluster_settings import effective, strategy
from manager.model import projections
from manager.overcommit import calculation, columns, demand, inventory, table

Since = Callable[[str], float | None]
"""Tells how many seconds ago a node was written; None if it never was."""


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

    nodes: Sequence[projections.Node]
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


class Sources(NamedTuple):
    """The stores that decide about overcommit."""

    nodes: store.Store[projections.Node]
    metrics: store.Store[projections.Metric]
    pods: store.Store[projections.Pod]
    topologies: store.Store[inventory.Topology]
    devices: store.Store[accelerators.Inventory]


class Sweep:
    """Rows for all nodes and pods, and how to look at them."""

    def __init__(self, seen: Sources) -> None:
        self.demands = demand.Demands(seen.pods, seen.metrics)
        self._topologies = seen.topologies
        self._devices = seen.devices
        self.nodes = table.NodeTable(seen.nodes, seen.metrics, seen.topologies)
        self.pods = table.PodTable(self.demands, seen.pods, seen.metrics)

    def picture(self, settings: effective.ClusterSettings, now: float) -> Picture:
        """Calculate what all nodes lend."""
        rows, nodes = self.nodes.present()
        there = self.nodes.chosen(rows)
        given, marks, ratio = self._said(settings, rows, nodes)
        parts = self.nodes.zones(rows)
        pods = self._pods(nodes, parts)
        held = columns.demand(pods, len(nodes), given.rules)
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

    def look(self, settings: effective.ClusterSettings, now: float, since: Since) -> Looks:
        """Find the nodes that have to be looked at now, and when to look at the others."""
        picture = self.picture(settings, now)
        ago = np.array([_nan(since(node.name)) for node in picture.nodes], dtype=np.float64)
        # Who was never written by this process is due, as is who was not written for long.
        refresh = picture.rules.refresh * picture.nodes_columns.refresh_part
        due = ~(ago < refresh)
        changed, small = _changed(picture, due)
        wanted = changed | picture.marks
        rest = picture.nodes_columns.updated_at + picture.rules.degrade - now + 1
        rest = np.where(small, np.fmin(rest, refresh - ago), rest)
        later = ~wanted & (picture.lends | small)
        known = [node.name for node in picture.nodes]
        return Looks(
            tuple(known[at] for at in np.flatnonzero(wanted).tolist()),
            tuple((known[at], float(rest[at])) for at in np.flatnonzero(later).tolist()),
        )

    def _pods(self, nodes: Sequence[projections.Node], parts: columns.Zones) -> columns.Pods:
        index = {node.name: at for at, node in enumerate(nodes)}
        order = np.full(self.pods.nodes.used + 1, -1, dtype=np.int64)
        for name, row in self.pods.nodes.by_name.items():
            order[row] = index.get(name, -1)
        many = np.bincount(parts.node, minlength=len(nodes))
        return self.pods.chosen(order, np.cumsum(many) - many, many)

    def _said(
        self,
        settings: effective.ClusterSettings,
        rows: columns.Ints,
        nodes: Sequence[projections.Node],
    ) -> tuple["_Given", columns.Bools, columns.Floats]:
        """Read what is set for each node, and what it says about its processors because of it."""
        readers = _Readers(settings)
        words = self.nodes.said(rows)
        index = readers.numbers(nodes, words[0].astype(np.bool_))
        # Nodes with equal settings and equal reports get equal results.
        keys, group = np.unique(np.vstack((index, words[1:])), axis=1, return_inverse=True)
        one_of = np.zeros(keys.shape[1], dtype=np.int64)
        one_of[group] = np.arange(len(nodes))
        said = [self._told(readers, nodes[at], int(index[at])) for at in one_of.tolist()]
        ratios = np.array([ratio for ratio, _ in said], dtype=np.float64)
        marks = np.array([mark for _, mark in said], dtype=np.bool_)[group]
        enabled = np.array([rules.enable for rules, *_ in readers.distinct], np.bool_)[index]
        enabled &= settings.colocation_enabled
        devices = words[1].astype(np.bool_)
        for at in self._with_devices(nodes):
            devices[at] = True
        rules = columns.rules([rules for rules, *_ in readers.distinct], index)
        return _Given(rules, enabled), marks | devices, ratios[group]

    def _told(self, readers: "_Readers", node: projections.Node, number: int) -> tuple[float, bool]:
        """Return how much faster a node is, and whether it has to be told something about that."""
        rules, normal, ampl = readers.distinct[number]
        before = node.annotations.get(names.ANNOTATION_AMPLIFICATION)
        if not (readers.on and rules.enable):
            return 1.0, before is not None
        said = _said(node, self._topologies.get(node.name), normal, ampl)
        news = said.problem or before != said.amplification or _is_news(node, said.text)
        return said.ratio, news

    def _with_devices(self, nodes: Sequence[projections.Node]) -> Iterator[int]:
        if not len(self._devices):
            return
        for at, node in enumerate(nodes):
            if node.name in self._devices:
                yield at


def _nan(value: float | None) -> float:
    return np.nan if value is None else value


def _is_news(node: projections.Node, text: str) -> bool:
    if not text:
        return False
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


_Settings = tuple[strategy.Strategy, strategy.Normalization | None, strategy.Amplification | None]


class _Readers:
    """Reads settings once for all nodes that they hold on alike."""

    def __init__(self, settings: effective.ClusterSettings) -> None:
        self._settings = settings
        self.on = settings.colocation_enabled
        self.distinct: list[_Settings] = []
        self._known: dict[tuple[int, ...], int] = {}

    def numbers(self, nodes: Sequence[projections.Node], own: columns.Bools) -> columns.Ints:
        """Return for each node the number of what is set for it."""
        alike = not any(section.entries for section in self._settings.sections.values())
        found = np.zeros(len(nodes), dtype=np.int64)
        if alike and not own.all():
            common = self._number(nodes[int(np.argmin(own))])
            found[:] = common
        for at in np.flatnonzero(own).tolist() if alike else range(len(nodes)):
            found[at] = self._number(nodes[at])
        return found

    def _number(self, node: projections.Node) -> int:
        given = self._settings
        read = (
            given.rules(node.labels, node.annotations),
            given.normalization(node.labels),
            given.amplification(node.labels),
        )
        number = self._known.setdefault(tuple(map(id, read)), len(self.distinct))
        if number == len(self.distinct):
            # Kept in the list, so that nothing else gets its identity.
            self.distinct.append(read)
        return number


def _said(
    node: projections.Node,
    there: inventory.Topology | None,
    normal: strategy.Normalization | None,
    ampl: strategy.Amplification | None,
) -> _Said:
    """Return what a node is to say about its processors."""
    found = normalization.Result(problem=calculation.UNREAD)
    if normal is not None:
        processors = None if there is None else there.processors
        found = normalization.settled(
            normal.enable, normal.default, normal.models, node.labels, processors
        )
    before = node.annotations.get(names.ANNOTATION_CPU_NORMALIZATION, "")
    ratio = normalization.ratio_of(found.text or before)
    factors = amplification.Ratios(problem=calculation.UNREAD)
    if ampl is not None:
        factors = amplification.ratios(ampl.enable, ampl.ratios, ratio)
    problem = bool(found.problem or factors.problem)
    return _Said(found.text, ratio, factors.text or None, problem)
