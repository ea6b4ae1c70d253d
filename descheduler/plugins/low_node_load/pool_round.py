"""One round of one pool: sources, targets, and the two phases of relief. Pure."""

import dataclasses
from collections.abc import Generator, Iterable
from typing import Final

import numpy as np

from descheduler.framework import protocols
from descheduler.framework.nodes import node_load
from descheduler.model import nodeinfo
from descheduler.plugins.low_node_load import (
    anomaly,
    classification,
    pools,
    reasons,
    relief,
    thresholds,
)

_PROMILLE: Final = 1000
Relief = Generator[protocols.Suggestion, protocols.Answer, None]


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """What the pools of one round share."""

    settings: pools.Settings
    view: protocols.View
    load: node_load.Load
    moved: set[str] = dataclasses.field(default_factory=set)
    """UIDs of pods that leave by this round."""
    relieved: set[str] = dataclasses.field(default_factory=set)
    """Sources of earlier pools; pools with a selector leave them out."""
    notes: list[str] = dataclasses.field(default_factory=list)
    counts: dict[tuple[str, str], int] = dataclasses.field(default_factory=dict)
    """Nodes by pool and class."""


def balance(shared: Round, pool: pools.Pool, detectors: anomaly.Detectors) -> Relief:
    """Suggest pods that leave the overloaded nodes of a pool."""
    nodes = [
        node
        for node in shared.view.nodes
        if pool.selects(node) and (pool.selector is None or node.name not in shared.relieved)
    ]
    stage = _Stage(shared, pool, nodes)
    shared.counts.update(stage.counts(len(nodes)))
    acting = stage.acting(detectors)
    if not acting.high.size and not acting.prod_high.size:
        return
    note = reasons.idle(pool, stage.classes, len(nodes), shared.settings.number_of_nodes)
    if note:
        shared.notes.append(note)
        return
    yield from stage.relieve(acting, detectors)
    shared.notes.extend(reasons.limited(pool, *one) for one in sorted(stage.limited.items()))
    for kind, rows in ((anomaly.Kind.NODE, acting.high), (anomaly.Kind.PROD, acting.prod_high)):
        names = stage.names(rows)
        detectors.normal(kind, names)
        shared.relieved.update(names)


class _Stage:
    """The measured nodes of a pool, told apart."""

    __slots__ = (
        *("_bounds", "_columns", "_levels", "_places", "_pool", "_rows", "_shared"),
        *("classes", "limited"),
    )

    def __init__(self, shared: Round, pool: pools.Pool, nodes: Iterable[nodeinfo.Node]) -> None:
        load = shared.load
        self._shared, self._pool = shared, pool
        self.limited: dict[str, int] = {}
        self._levels = pools.completed(pool)
        self._columns = load.columns(self._levels.resources)
        rows = [load.rows[node.name] for node in nodes if node.name in load.rows]
        self._rows = np.array(rows, dtype=np.intp)
        self._places = {row: place for place, row in enumerate(rows)}
        self._bounds = thresholds.bounds(self._levels, load, self._rows, deviation=pool.deviation)
        self.classes = classification.classify(load, self._rows, self._columns, self._bounds)

    def counts(self, nodes: int) -> dict[tuple[str, str], int]:
        """Return how many nodes of the pool are in each class, and how many are not measured."""
        found = {**self.classes.counts(), "unmeasured": nodes - len(self._rows)}
        return {(self._pool.name, kind): count for kind, count in found.items()}

    def names(self, rows: Iterable[int]) -> list[str]:
        """Return the names of nodes."""
        return [self._shared.load.nodes[row].name for row in rows]

    def acting(self, detectors: anomaly.Detectors) -> classification.Classes:
        """Return the classes with those sources alone that have been overloaded long enough."""
        classes, found = self.classes, {}
        for kind, rows in (
            (anomaly.Kind.NODE, classes.high),
            (anomaly.Kind.PROD, classes.prod_high),
        ):
            names = self.names(rows)
            detectors.clear(kind, set(self.names(self._rows)).difference(names))
            due = detectors.overloaded(kind, names)
            found[kind] = rows[np.array([name in due for name in names], dtype=np.bool_)]
        return dataclasses.replace(
            classes, high=found[anomaly.Kind.NODE], prod_high=found[anomaly.Kind.PROD]
        )

    def relieve(self, acting: classification.Classes, detectors: anomaly.Detectors) -> Relief:
        """Relieve nodes first, then nodes whose prod pods use too much."""
        classes = self.classes
        both = self._room(anomaly.Kind.NODE, classes.both_low)
        both_prod = self._room(anomaly.Kind.PROD, classes.both_low)
        prod_only = self._room(anomaly.Kind.PROD, classes.prod_low)
        available = both + self._room(anomaly.Kind.NODE, classes.low)
        targets = np.concatenate((classes.low, classes.both_low))
        phase = self._phase(anomaly.Kind.NODE, acting.high, targets, available)
        yield from self._sources(phase, acting.high, detectors)
        available = prod_only + np.minimum(both_prod, np.minimum(both, phase.available))
        targets = np.concatenate((classes.prod_low, classes.both_low))
        phase = self._phase(anomaly.Kind.PROD, acting.prod_high, targets, available)
        yield from self._sources(phase, acting.prod_high, detectors)

    def _sources(
        self, phase: relief.Phase, rows: node_load.Places, detectors: anomaly.Detectors
    ) -> Relief:
        if not phase.targets.names:
            return
        for row in self._hottest_first(rows):
            yield from relief.relieve(phase, row, self._shared.view, self._shared.moved)
            if not phase.is_over(row):
                detectors.clear(phase.kind, self.names([row]))

    def _phase(
        self,
        kind: anomaly.Kind,
        sources: node_load.Places,
        targets: node_load.Places,
        available: node_load.Columns,
    ) -> relief.Phase:
        shared, node, prod = self._shared, self._bounds.node.high, self._bounds.prod.high
        own = node if kind is anomaly.Kind.NODE else prod
        names = tuple(self.names(targets))
        return relief.Phase(
            kind=kind,
            pool=self._pool,
            levels=self._levels,
            columns=self._columns,
            load=shared.load,
            high={row: own[self._places[row]] for row in sources.tolist()},
            targets=relief.Targets(
                names=names,
                places={name: place for place, name in enumerate(names)},
                room=self._rooms(anomaly.Kind.NODE, targets),
                prod_room=self._rooms(anomaly.Kind.PROD, targets),
                fit=shared.view.fit.rows(names) if shared.settings.node_fit else None,
            ),
            available=available,
            covers=shared.settings.covers,
            limited=self.limited,
            dry_run=shared.settings.dry_run,
        )

    def _room(self, kind: anomaly.Kind, rows: node_load.Places) -> node_load.Columns:
        """Return how much nodes take altogether before they exceed their high thresholds."""
        found: node_load.Columns = self._rooms(kind, rows).sum(axis=1)
        return found

    def _rooms(self, kind: anomaly.Kind, rows: node_load.Places) -> node_load.Columns:
        """Return how much each node takes, a row per resource."""
        load, is_node = self._shared.load, kind is anomaly.Kind.NODE
        at = np.ix_(rows, self._columns)
        high = (self._bounds.node if is_node else self._bounds.prod).high
        usage = (load.usage if is_node else load.prod)[at] + load.arriving[at]
        room = high[[self._places[row] for row in rows.tolist()]] - usage
        return np.ascontiguousarray(room.T)

    def _hottest_first(self, rows: node_load.Places) -> list[int]:
        load, weights = self._shared.load, self._pool.weights
        scores = np.zeros(len(rows), dtype=np.int64)
        for column, name in enumerate(load.resources):
            size = load.capacity[rows, column]
            used = np.minimum(load.usage[rows, column], size)
            parts = np.zeros(len(rows), dtype=np.int64)
            np.floor_divide(used * _PROMILLE, size, out=parts, where=size > 0)
            scores += weights.get(name, 0) * parts
        scores //= max(sum(weights.values()), 1)
        return [int(row) for row in rows[np.argsort(-scores, kind="stable")]]
