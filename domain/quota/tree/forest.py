"""The forest of ElasticQuota trees as one immutable value: who uses, asks for and may have what.

Every change gives a new forest; equal histories in any order give equal forests, and the inverse of
a change leads back to an equal one. Pods are summed by quota label and namespace, so that a quota
that comes, goes or moves takes its pods along at once. Changes of pods climb one path; what depends
on quotas or rules is computed when it is first asked for. Pure.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from api import names
from api.koordinator import quota as api
from domain import persistent
from domain.quota import model
from domain.quota.tree import accounts, bounds, figures, layout, membership, sums

Amounts = model.Amounts
EMPTY = model.EMPTY
_NO_QUOTAS: Final[persistent.Map[str, api.Quota]] = persistent.Map()
_NO_GROUPS: Final[persistent.Map[sums.Group, sums.Sums]] = persistent.Map()


class _Written(NamedTuple):
    """What objects and settings say."""

    rules: model.Rules
    quotas: persistent.Map[str, api.Quota]


class Forest:
    """All quotas, the nodes that they share out and the pods that count in them."""

    __slots__ = ("_before", "_groups", "_layout", "_rows", "_total", "_written")

    def __init__(
        self,
        written: _Written,
        total: Amounts,
        groups: persistent.Map[sums.Group, sums.Sums],
        known: layout.Layout | None = None,
        rows: accounts.Rows | None = None,
        before: layout.Layout | None = None,
    ) -> None:
        """`before` is a layout of mostly the same quotas under the same rules."""
        self._written = written
        self._total = total
        self._groups = groups
        self._layout = known
        self._rows = rows
        self._before = before if known is None else None

    @classmethod
    def empty(cls, rules: model.Rules | None = None) -> "Forest":
        """Return a forest without quotas, nodes and pods."""
        return cls(_Written(rules or model.Rules(), _NO_QUOTAS), EMPTY, _NO_GROUPS)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Forest):
            return NotImplemented
        return (
            self._written == other._written
            and self._total == other._total
            and self._groups == other._groups
        )

    @property
    def rules(self) -> model.Rules:
        """Return the rules in force."""
        return self._written.rules

    # --- Changes -------------------------------------------------------------------------------

    def with_rules(self, rules: model.Rules) -> "Forest":
        """Return the forest under other rules."""
        return Forest(self._written._replace(rules=rules), self._total, self._groups)

    def with_quota(self, before: api.Quota | None, after: api.Quota | None) -> "Forest":
        """Return the forest after an ElasticQuota came, changed or went."""
        quotas = self._written.quotas
        if before is not None and (after is None or after.identity != before.identity):
            quotas = quotas.replaced(before.identity, None)
        known = quotas.get(after.identity) if after is not None else None
        if after is not None:
            quotas = quotas.replaced(after.identity, after)
        written = self._written._replace(quotas=quotas)
        latest = self._layout or self._before
        if known is None or after is None or self._layout is None:
            return Forest(written, self._total, self._groups, before=latest)
        if _governing(known) == _governing(after):
            return Forest(written, self._total, self._groups, self._layout, self._rows)
        if self._stands_alike(known, after):
            fresh, rows = self._layout.amended(after.name, after), self._rows
            if rows is not None:
                rows = accounts.amended(fresh, rows, fresh.rows[after.name])
            return Forest(written, self._total, self._groups, fresh, rows)
        return Forest(written, self._total, self._groups, before=latest)

    def _stands_alike(self, known: api.Quota, after: api.Quota) -> bool:
        """Whether a quota that counts changed in nothing but its figures."""
        place = self._members.places.get(after.name)
        return (
            place is not None
            and place.quota.identity == after.identity
            and known.cap.keys() == after.cap.keys()
            and _standing(known) == _standing(after)
        )

    def with_node(self, before: model.Pairs | None, after: model.Pairs | None) -> "Forest":
        """Return the forest after the allocatable resources of a node came, changed or went."""
        if before == after:
            return self
        total = dict(self._total)
        for pairs, sign in ((before or (), -1), (after or (), 1)):
            for name, amount in pairs:
                total[name] = total.get(name, 0) + sign * amount
        kept = {name: amount for name, amount in total.items() if amount}
        return Forest(self._written, kept, self._groups, self._layout, self._rows, self._before)

    def with_pod(self, before: model.PodUse | None, after: model.PodUse | None) -> "Forest":
        """Return the forest after a pod came, changed (also its quota) or went."""
        groups, rows = self._groups, self._rows
        known = self._layout
        for group, delta in sums.changes(before, after):
            total = sums.plus(groups.get(group, {}), delta)
            groups = groups.replaced(group, total or None)
            if known is not None and rows is not None:
                row = known.row_of(*group)
                if row is not None:
                    rows = accounts.changed(known, rows, row, delta)
        return Forest(self._written, self._total, groups, known, rows, self._before)

    def with_pods(self, pods: Iterable[tuple[model.PodUse, int]]) -> "Forest":
        """Return the forest with many pods more in one step, each so many times."""
        found: dict[sums.Group, sums.Sums] = {}
        for pod, count in pods:
            group = pod.quota, pod.namespace
            found[group] = sums.plus(found.get(group, {}), sums.of_pod(pod, count))
        groups = self._groups
        for group, extra in found.items():
            groups = groups.replaced(group, sums.plus(groups.get(group, {}), extra) or None)
        return Forest(self._written, self._total, groups, before=self._layout or self._before)

    # --- Structure -----------------------------------------------------------------------------

    @property
    def _known(self) -> layout.Layout:
        if self._layout is None:
            rules, quotas = self._written
            members = membership.membership(quotas.values(), multi_tree=rules.multi_tree)
            self._layout = layout.Layout(members, rules, self._before)
            self._before = None
        return self._layout

    @property
    def _members(self) -> membership.Membership:
        return self._known.members

    @property
    def naming(self) -> object:
        """Return an object that is the same only as long as no pod has another quota."""
        return self._known

    def name_of(self, label: str, namespace: str) -> str:
        """Return the quota of pods by their label and namespace; empty where none counts them."""
        return self._members.name_of(label, namespace, default=self.rules.default_quota)

    def quota(self, name: str) -> api.Quota | None:
        """Return the object of a quota, None where there is none."""
        place = self._members.places.get(name)
        found = place.quota if place is not None else self._members.reserved.get(name)
        return self._written.quotas[found.identity] if found is not None else None

    @property
    def has_trees(self) -> bool:
        """Whether there is a quota in any tree: cheap, also right after quotas have changed."""
        return any(not model.is_reserved(one.name) for one in self._written.quotas.values())

    def names(self) -> Sequence[str]:
        """Return the quotas in their trees, parents before children."""
        return tuple(self._members.places)

    def children(self, name: str) -> Sequence[str]:
        """Return the children of a quota in order; those of the root quota at the top of trees."""
        if name != names.ROOT_QUOTA:
            return self._members.children.get(name, ())
        return tuple(one for one, place in self._members.places.items() if not place.parent)

    def path(self, name: str) -> Sequence[str]:
        """Return a quota and its ancestors, without the root quota; empty where it is unknown."""
        return membership.path(self._members, name)

    def tree(self, name: str) -> str:
        """Return the tree of a quota; empty for the default tree."""
        place = self._members.places.get(name)
        return place.tree if place is not None else ""

    def trees(self) -> Sequence[str]:
        """Return all trees, the default tree (empty) first."""
        return tuple(self._known.trees)

    def conflicts(self) -> Sequence[str]:
        """Return what is wrong with quotas as sentences for their authors, boundedly many."""
        return self._members.conflicts

    # --- Figures -------------------------------------------------------------------------------

    @property
    def _figures(self) -> figures.Reading:
        known = self._known
        if self._rows is None:
            self._rows = accounts.built(known, self._groups.items())
        return figures.Reading(known, self._rows, self._total)

    def refreshed(self) -> "Forest":
        """Compute the runtime of all quotas at once, so that reading them is a look-up."""
        self._figures.refresh()
        return self

    def total(self, tree: str = "") -> Amounts:
        """Return what a tree shares out at its top; of the default tree it may be negative."""
        return self._figures.total(tree)

    def figures(self, name: str) -> model.Figures | None:
        """Return all figures of a quota, None where it is unknown."""
        return self._figures.figures(name)

    def bounds(self, name: str) -> model.Bounds | None:
        """Return what says how much room a quota has, None where it is unknown."""
        return bounds.bounds(self._figures, name)

    def runtime(self, name: str) -> Amounts:
        """Return the runtime of a quota by resource; of one outside of trees its cap."""
        return self._figures.runtime(name)

    def limit(self, name: str) -> Amounts:
        """Return what the pods of a quota may use now, by resource; what is absent is unlimited."""
        return self._figures.limit(name)

    def used(self, name: str) -> Amounts:
        """Return what assigned pods of a quota and its descendants use, by resource."""
        return self._figures.used(name)

    def room_state(self, name: str) -> tuple[object, ...]:
        """Return a value that differs where limit or use of a quota does: cheap to get, opaque."""
        return self._figures.room_state(name)

    def room_sources(self, listed: Iterable[str]) -> dict[str, tuple[object, ...]]:
        """Return a value for each quota that is equal only where room_state is: still cheaper."""
        return self._figures.room_sources(listed)

    def shortage(
        self, name: str, requests: model.Pairs, *, preemptible: bool, less: Amounts = EMPTY
    ) -> model.Shortage | None:
        """Say why a pod that is counted as requested may not run, None where it may.

        `requests` leaves out ``pods``; `less` is used now and will be gone before the pod runs.
        """
        return self._figures.shortage(name, requests, preemptible=preemptible, less=less)

    def derivation(self, name: str) -> Sequence[model.Step]:
        """Return how the runtime of a quota comes about, from the top of its tree downward."""
        return self._figures.derivation(name)


def _governing(one: api.Quota) -> api.Quota:
    """Return a quota without what changes no figure: its status and version."""
    return msgspec.structs.replace(one, used=EMPTY, resource_version="", uid="")


def _standing(one: api.Quota) -> api.Quota:
    """Return a quota without its figures: what is left says where it stands and whom it governs."""
    return msgspec.structs.replace(
        _governing(one),
        minimum=EMPTY,
        maximum=EMPTY,
        hard=EMPTY,
        weight=EMPTY,
        borrowed=EMPTY,
        borrowed_at=0.0,
        priority=0,
        lends=True,
        admission=None,
        strict=(),
        unreadable=(),
    )
