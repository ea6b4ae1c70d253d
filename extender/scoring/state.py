"""The scheduler's snapshot as its score plug-ins read it, kept in step with the cluster state.

Pods count where they are bound or assumed, as in the scheduler's cache; nominated pods and
reservations do not. A *shadow* is a pod that filter has just sent to a node: it counts here, and
here only, until its bind claims the node or for a short time.
"""

import collections
from typing import Final

import msgspec
import numpy as np

from api.kubernetes import core
from domain.scoring import columns as node_columns
from domain.scoring import objects
from domain.scoring.indexes import affinity, cluster
from extender.framework import views
from extender.scoring import traits
from extender.state import claims, deltas, records

SHADOW_SECONDS: Final = 2.0
_FIRST_CAPACITY: Final = 64
NOWHERE: Final = -1


class Placed(msgspec.Struct, frozen=True, gc=False):
    """A pod on a node, as far as it concerns the scores of others."""

    node: str
    namespace: str
    traits: traits.PodTraits


class ScoringState:
    """Amounts in columns and everything else in indexes, one row per node name."""

    def __init__(self, resources: tuple[str, ...]) -> None:
        self.indexes = cluster.ClusterIndexes()
        self.terms = affinity.TermIndex()
        self.names: list[str] = []
        """Node name by row, empty where a row is free."""
        self._resources = {name: place for place, name in enumerate(resources)}
        self._rows: dict[str, int] = {}
        self._pods: list[int] = []
        """Number of pods by row."""
        self._known: set[int] = set()
        self._free: list[int] = []
        self._amounts = _matrix(2 * len(resources) + 2, _FIRST_CAPACITY)
        self._shadows: collections.OrderedDict[str, tuple[float, Placed]] = (
            collections.OrderedDict()
        )
        self._translated: tuple[int, node_columns.Integers] | None = None
        self._shown: tuple[node_columns.Integers, node_columns.NodeColumns] | None = None
        """What was shown of these amounts, which change in place."""

    # -- reading ---------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.names)

    def row(self, name: str) -> int:
        """Return the row of a node, NOWHERE if there is none."""
        return self._rows.get(name, NOWHERE)

    def nodes(self) -> node_columns.NodeColumns:
        """Return the amounts of all rows."""
        if self._shown is None or self._shown[0] is not self._amounts:
            count = len(self._resources)
            shown = self._amounts[:]
            shown.flags.writeable = False
            self._shown = (
                self._amounts,
                node_columns.NodeColumns(
                    self._resources, shown[:count], shown[count : 2 * count], shown[2 * count :]
                ),
            )
        return self._shown[1]

    def translated(self, view: views.View) -> node_columns.Integers:
        """Return the row here of every row of a view; NOWHERE for rows without a node."""
        if self._translated is None or self._translated[0] != view.members:
            rows = np.full(len(view.names), NOWHERE, dtype=np.int64)
            for name, row in view.rows.items():
                rows[row] = self._rows.get(name, NOWHERE)
            self._translated = view.members, rows
        return self._translated[1]

    def shadows(self) -> dict[str, str]:
        """Return the node of every shadow by the pod's uid."""
        return {uid: placed.node for uid, (_, placed) in self._shadows.items()}

    # -- following the cluster state -------------------------------------------------------

    def follow(self, delta: deltas.Delta) -> None:
        """Take in a change of the cluster state."""
        match delta:
            case deltas.ClaimDelta(ident, before, after):
                self._move(ident, _placed(before), _placed(after))
            case deltas.NodeDelta(name, _, None):
                self._remove_node(name)
            case deltas.NodeDelta(_, _, record) if record is not None:
                self._set_node(record)

    def _move(self, uid: str, before: Placed | None, after: Placed | None) -> None:
        if after is not None and uid in self._shadows:
            shadow = self._shadows[uid][1]
            if before is None and shadow == after:
                # It was sent there and is counted there: its claim takes the place of the shadow.
                del self._shadows[uid]
                return
            self._end_shadow(uid)
        if before == after:
            return
        if before is not None:
            self._count(before, -1)
        if after is not None:
            self._count(after, 1)

    def _count(self, placed: Placed, sign: int) -> None:
        row, found = self._row(placed.node), placed.traits
        count = len(self._resources)
        column = self._amounts[count:, row]
        column += sign * np.array((*found.requested, *found.nonzero), dtype=np.int64)
        if sign > 0:
            self.terms.add(found.terms)
        else:
            self.terms.remove(found.terms)
        if not found.terminating:
            pods = self.indexes.pods
            (pods.add if sign > 0 else pods.remove)(row, placed.namespace, found.labels)
        self._pods[row] += sign
        self._release(row)

    def _set_node(self, record: records.NodeRecord) -> None:
        row = self._row(record.name)
        if row not in self._known:
            self._known.add(row)
            self._translated = None
        found = record.scoring
        taints, images = (found.taints, found.images) if found is not None else ((), ())
        self.indexes.set_node(
            row,
            objects.Node(
                metadata=core.ObjectMeta(name=record.name, labels=dict(record.labels)),
                spec=core.NodeSpec(taints=taints),
                status=objects.NodeStatus(images=images),
            ),
        )
        offered = dict(record.allocatable)
        for name, place in self._resources.items():
            self._amounts[place, row] = offered.get(name, 0)

    def _remove_node(self, name: str) -> None:
        row = self._rows.get(name)
        if row is None or row not in self._known:
            return
        self._known.discard(row)
        self._translated = None
        self.indexes.remove_node(row)
        self._amounts[: len(self._resources), row] = 0
        self._release(row)

    # -- shadows ---------------------------------------------------------------------------

    def cast_shadow(self, uid: str, placed: Placed, now: float) -> None:
        """Count a pod that filter has sent to a node; `now` is the monotonic clock."""
        self._end_shadow(uid)
        self._shadows[uid] = now + SHADOW_SECONDS, placed
        self._count(placed, 1)

    def expire(self, now: float) -> None:
        """End the shadows whose time is over."""
        while self._shadows:
            uid, (until, _) = next(iter(self._shadows.items()))
            if until > now:
                return
            self._end_shadow(uid)

    def end_shadow(self, uid: str) -> None:
        """Stop counting a pod that was sent to a node and is being scheduled again."""
        self._end_shadow(uid)

    def _end_shadow(self, uid: str) -> None:
        found = self._shadows.pop(uid, None)
        if found is not None:
            self._count(found[1], -1)

    # -- rows ------------------------------------------------------------------------------

    def _row(self, name: str) -> int:
        row = self._rows.get(name)
        if row is not None:
            return row
        if self._free:
            row = self._free.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            self.names.append(name)
            self._pods.append(0)
            if row == self._amounts.shape[1]:
                wider = _matrix(self._amounts.shape[0], 2 * row)
                wider[:, :row] = self._amounts
                self._amounts = wider
        self._rows[name] = row
        return row

    def _release(self, row: int) -> None:
        """Give a row back that has neither a node nor pods."""
        if self._pods[row] or row in self._known:
            return
        del self._rows[self.names[row]]
        self.names[row] = ""
        self._free.append(row)

    def fingerprint(self) -> dict[str, tuple[object, ...]]:
        """Return the figures of every node by its name, independent of the order of arrival."""
        return {
            name: (row in self._known, self._pods[row], tuple(self._amounts[:, row].tolist()))
            for name, row in self._rows.items()
        }


def _placed(claim: claims.Claim | None) -> Placed | None:
    if claim is None or claim.kind not in claims.FIRM or claim.pod.scoring is None:
        return None
    return Placed(claim.node, claim.pod.namespace, claim.pod.scoring)


def _matrix(height: int, width: int) -> node_columns.Integers:
    return np.zeros((height, width), dtype=np.int64)
