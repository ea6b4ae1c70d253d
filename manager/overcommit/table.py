"""Rows of numbers for every node and pod, fed by the stores, for looking at all at once."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from api import names
from api.koordinator.metadata import annotations as payloads
from api.koordinator.metadata import qos
from api.wire import quantity
from domain.devices.requests import accelerators, network
from domain.lending import colocation
from kube.informers import store
from manager.cluster_settings import effective
from manager.model import projections
from manager.overcommit import columns, demand, inventory, node_status

_DEVICES: Final = (*accelerators.RESOURCES, *network.RESOURCES)
_MARKS: Final = {names.ANNOTATION_NETWORK_BANDWIDTH, names.ANNOTATION_DEVICES_OFFERED}
LENT: Final = (*names.BATCH_RESOURCES, *names.MID_RESOURCES)
_FIRST: Final = 64
_MOST_ZONES: Final = 62


class Numbers:
    """Numbers of rows; one that was given back is used again."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self.used = 0
        """How many rows there are, with those that are free."""

    def take(self) -> int:
        """Return a free row."""
        if self._free:
            return self._free.pop()
        self.used += 1
        return self.used - 1

    def give_back(self, row: int) -> None:
        """Let others have a row."""
        self._free.append(row)


class Rows:
    """Rows by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, int] = {}
        self._numbers = Numbers()

    def take(self, name: str) -> int:
        """Return the row of a name, a new one if it has none."""
        row = self.by_name.get(name)
        if row is None:
            row = self.by_name[name] = self._numbers.take()
        return row

    def give_back(self, name: str) -> int | None:
        """Return the row that a name had, which others may have from now on."""
        row = self.by_name.pop(name, None)
        if row is not None:
            self._numbers.give_back(row)
        return row

    @property
    def used(self) -> int:
        """How many rows there are, with those that are free."""
        return self._numbers.used


class Grid:
    """A growing array: fields by rows."""

    def __init__(self, fields: int, kind: Any = np.int64, fill: Any = 0) -> None:
        self._cells = np.full((fields, _FIRST), fill, dtype=kind)
        self._fill = fill

    def put(self, row: int, values: Sequence[Any]) -> None:
        """Set all fields of a row."""
        if row >= self._cells.shape[1]:
            more = np.full_like(self._cells, self._fill)
            self._cells = np.concatenate((self._cells, more), axis=1)
            self.put(row, values)
            return
        self._cells[:, row] = values

    def cells(self, rows: int) -> npt.NDArray[Any]:
        """Return the first rows; do not keep them, the next change may replace them."""
        if rows > self._cells.shape[1]:
            self.put(rows - 1, [self._fill] * len(self._cells))
        return self._cells[:, :rows]


def _bounded(amounts: Iterable[int]) -> list[int]:
    """Return amounts that can be added up without leaving the range of numbers."""
    return [max(min(amount, columns.MOST), -columns.MOST) for amount in amounts]


class PodTable:
    """A row for every pod that holds a part of a node, and for what is measured of gone ones.

    The names of nodes have rows of their own, whether the node is known or not.
    """

    def __init__(
        self,
        demands: demand.Demands,
        pods: store.Store[projections.Pod],
        metrics: store.Store[projections.Metric],
    ) -> None:
        self.nodes = Rows()
        self._numbers = Numbers()
        self._rows: dict[str, dict[str, int]] = {}
        self._node = Grid(1, fill=-1)
        self._amounts = Grid(4)
        self._marks = Grid(5, np.bool_, fill=False)
        # Its own listeners come first, so it knows of every change that is delivered here.
        self._demands = demands
        self._metrics = metrics
        self._bound = Grid(1)
        """The zones that a pod is bound to, one bit each."""
        pods.listen(self._pod_changed)
        metrics.listen(self._metric_changed)

    @property
    def rows_used(self) -> int:
        """How many rows there are, with those that are free."""
        return self._numbers.used

    def _pod_changed(self, change: store.Change[projections.Pod]) -> None:
        old, new = change.old, change.new
        if old is not None and old.node and (new is None or new.node != old.node):
            self._measure(old.node, change.key)
        if new is not None and new.node:
            self._measure(new.node, change.key)

    def _metric_changed(self, change: store.Change[projections.Metric]) -> None:
        node = change.key
        report = None if change.new is None else change.new.report
        keys = {*self._rows.get(node, ()), *(() if report is None else report.pods)}
        for key in keys:
            self._measure(node, key)

    def _measure(self, node: str, key: str) -> None:
        """Set the row of a pod by what is known of it now."""
        metric = self._metrics.get(node)
        found = None if metric is None else metric.report.pods.get(key)
        pod = self._demands.pods(node).get(key)
        if pod is not None:
            self._put(self._row(node, key), pod, None if found is None else found[0])
        elif found is not None:
            self._put_gone(self._row(node, key), *found)
        else:
            self._drop(node, key)

    def _row(self, node: str, key: str) -> int:
        here = self._rows.setdefault(node, {})
        row = here.get(key)
        if row is None:
            row = here[key] = self._numbers.take()
            self._node.put(row, (self.nodes.take(node),))
        return row

    def _put(self, row: int, pod: projections.Pod, usage: colocation.Amount | None) -> None:
        online = colocation.is_online(pod.band)
        marks = (
            usage is not None,
            online,
            pod.exclusive,
            colocation.holds_requests(pod.band),
            online and pod.band is not qos.Band.MID,
        )
        self._amounts.put(row, _bounded((*pod.request, *(usage or colocation.NOTHING))))
        self._marks.put(row, marks)
        self._bound.put(row, (sum({1 << zone for zone in pod.zones if 0 <= zone < _MOST_ZONES}),))

    def _put_gone(self, row: int, usage: colocation.Amount, band: qos.Band) -> None:
        self._amounts.put(row, _bounded((0, 0, *usage)))
        self._marks.put(row, (True, colocation.is_online(band), False, False, False))
        self._bound.put(row, (0,))

    def _drop(self, node: str, key: str) -> None:
        here = self._rows.get(node, {})
        row = here.pop(key, None)
        if row is None:
            return
        self._numbers.give_back(row)
        self._node.put(row, (-1,))
        if not here:
            del self._rows[node]
            self.nodes.give_back(node)

    def chosen(self, order: columns.Ints, first: columns.Ints, many: columns.Ints) -> columns.Pods:
        """Return the pods of some nodes.

        ``order`` says where a row of ``nodes`` is found among those nodes, -1 for not at all, as
        its last element does;
        ``first`` and ``many`` say for each of them where its zones begin and how many there are.
        """
        used = self._numbers.used
        node = order[self._node.cells(used)[0]]
        amounts, marks = self._amounts.cells(used), self._marks.cells(used)
        bound = self._bound.cells(used)[0]
        if (node < 0).any():
            here = np.flatnonzero(node >= 0)
            node, amounts, marks, bound = (
                node[here], amounts[:, here], marks[:, here], bound[here],
            )  # fmt: skip
        measured, online, exclusive, firm, prod = marks
        return columns.Pods(
            node, amounts[:2], amounts[2:], measured, online, exclusive, firm, prod,
            *_zoned(node, bound, first, many),
        )  # fmt: skip


def _zoned(
    node: columns.Ints, bits: columns.Ints, first: columns.Ints, many: columns.Ints
) -> tuple[columns.Ints, columns.Ints, columns.Ints]:
    """Return pods that are bound to zones once per zone, with the zone, and with how many."""
    rows = np.flatnonzero(bits)
    there = bits[rows] & ((1 << many[node[rows]]) - 1)
    places = range(int(many.max(initial=0)))
    held = [(there >> zone) & 1 for zone in places]
    among = np.zeros_like(there)
    for one in held:
        among += one
    found = [np.flatnonzero(one) for one in held]
    at = np.concatenate([np.zeros(0, dtype=np.int64), *found])
    zone = np.repeat(np.array(places, dtype=np.int64), [one.size for one in found])
    return rows[at], first[node[rows[at]]] + zone, among[at]


class NodeTable:
    """A row for every node that has said what it has, with what its agent measured."""

    def __init__(
        self,
        nodes: store.Store[projections.Node],
        metrics: store.Store[projections.Metric],
        topologies: store.Store[inventory.Topology],
    ) -> None:
        self._nodes = nodes
        self._metrics = metrics
        self._topologies = topologies
        self.rows = Rows()
        self._views: dict[int, projections.Node] = {}
        self._amounts = Grid(15)
        self._published = Grid(8, fill=columns.MISSING)
        self._others = Grid(4)
        self._zones: dict[int, tuple[tuple[int, ...], ...]] = {}
        self._zoned: tuple[bytes, columns.Zones] | None = None
        self._words = Rows()
        self._said = Grid(6)
        self._times = Grid(2, np.float64, fill=np.nan)
        for member in (nodes, metrics, topologies):
            member.listen(self._changed)

    def _changed(self, change: store.Change[Any]) -> None:
        self._refresh(change.key)

    def _refresh(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is None or node.capacity is None:
            row = self.rows.give_back(name)
            if row is not None:
                self._views.pop(row, None)
                self._zones.pop(row, None)
                self._zoned = None
            return
        row = self.rows.take(name)
        metric = self._metrics.get(name)
        self._views[row] = node
        self._amounts.put(row, _bounded(_figures(node, metric)))
        known = metric is not None and metric.report.measured
        at = metric.report.updated_at if metric is not None and known else None
        # The part of any refresh interval after which this node's own small changes are due.
        part = colocation.refresh_after(1.0, name)
        self._times.put(row, (np.nan if at is None else at, part))
        self._published.put(
            row,
            _bounded(part.get(name, columns.MISSING) for part in node.published for name in LENT),
        )
        self._others.put(row, _bounded(_beside(node)))
        there = self._topologies.get(name)
        self._said.put(row, self._keys(node, there))
        zones = tuple(map(_zone, there.zones)) if there is not None else ()
        if self._zones.get(row) != zones:
            self._zones[row] = zones
            self._zoned = None

    def present(self) -> tuple[columns.Ints, list[projections.Node]]:
        """Return the rows that are in use, and their nodes."""
        rows = sorted(self._views)
        return np.array(rows, dtype=np.int64), [self._views[row] for row in rows]

    def chosen(self, rows: columns.Ints) -> columns.Nodes:
        """Return what is known of nodes."""
        used = self.rows.used
        amounts = self._amounts.cells(used)[:, rows]
        others = self._others.cells(used)[:, rows]
        return columns.Nodes(
            capacity=amounts[0:2],
            allocatable=amounts[2:4],
            reserved=amounts[4:6],
            outside=amounts[6:8],
            mid_outside=amounts[8:10],
            reclaimable=amounts[10:12],
            usage=amounts[12:14],
            has_usage=amounts[14].astype(np.bool_),
            updated_at=self._times.cells(used)[0, rows],
            refresh_part=self._times.cells(used)[1, rows],
            published=self._published.cells(used)[:, rows],
            origin=others[:2],
            taken=others[2:],
        )

    def said(self, rows: columns.Ints) -> columns.Ints:
        """Return what nodes say of themselves as numbers, equal ones for equal words.

        Own settings (0 for none), offered devices (0 for none), and the four that `words` returns.
        """
        return self._said.cells(self.rows.used)[:, rows]

    def _keys(self, node: projections.Node, there: inventory.Topology | None) -> tuple[int, ...]:
        own = names.ANNOTATION_COLOCATION_STRATEGY in node.annotations
        own = own or not effective.LABELS.keys().isdisjoint(node.labels)
        devices = not _MARKS.isdisjoint(node.annotations) or any(
            name in part for part in node.published for name in _DEVICES
        )
        processors = None if there is None else there.processors
        words = (
            node.labels.get(names.LABEL_CPU_NORMALIZATION),
            node.annotations.get(names.ANNOTATION_CPU_NORMALIZATION),
            node.annotations.get(names.ANNOTATION_AMPLIFICATION),
            None if processors is None else processors.model_dump_json(),
        )
        return own, devices, *(self._words.take(word or "") for word in words)

    def zones(self, rows: columns.Ints) -> columns.Zones:
        """Return what is known of the zones of nodes, in the order of the nodes."""
        key = rows.tobytes()
        if self._zoned is None or self._zoned[0] != key:
            found = [
                (at, *zone)
                for at, row in enumerate(rows.tolist())
                for zone in self._zones.get(row, ())
            ]
            cells = np.array(found, dtype=np.int64).reshape(-1, 9).T
            self._zoned = key, columns.Zones(cells[0], cells[1:3], cells[3:])
        return self._zoned[1]


def _figures(node: projections.Node, metric: projections.Metric | None) -> tuple[int, ...]:
    report = projections.Report(None, colocation.NOTHING, {}) if metric is None else metric.report
    return (
        *(node.capacity or colocation.NOTHING),
        *node.allocatable,
        *node.reserved,
        *report.outside,
        *report.system.plus(report.prod_hosts),
        *report.reclaimable,
        *(report.usage or colocation.NOTHING),
        report.usage is not None,
    )


def _beside(node: projections.Node) -> tuple[int, ...]:
    """Return what was offered before third parties took theirs, and what they took."""
    taken = node_status.batch(dict.fromkeys(names.BATCH_RESOURCES, 0), node.annotations, "").taken
    origin = dict.fromkeys(names.BATCH_RESOURCES, columns.MISSING)
    text = node.annotations.get(names.ANNOTATION_ORIGIN_ALLOCATABLE)
    if text is not None:
        try:
            read = payloads.ORIGIN_ALLOCATABLE.read(node.annotations)
            origin |= {} if read is None else quantity.amounts(read.resources)
        except ValueError:
            pass  # As if there were none: the next write replaces it.
    return tuple(part.get(name, 0) for part in (origin, taken) for name in names.BATCH_RESOURCES)


def _zone(zone: inventory.Zone) -> tuple[int, ...]:
    missing = (columns.MISSING,) * len(inventory.SIDES)
    sides = [zone.published.get(name, missing) for name in names.BATCH_RESOURCES]
    return tuple(_bounded((*zone.capacity, *sides[0], *sides[1])))
