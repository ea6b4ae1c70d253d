"""Gangs: how many members each needs, has and has placed, and what it waits for. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from api.koordinator import scheduling
from domain.gangs import declaration
from manager.console.access import scope
from manager.console.views import paging, pods

WAITING, PARTIAL, RUNNING, EMPTY = "Waiting", "BelowMinimum", "Running", "Empty"
_ORDER: Final = {PARTIAL: 0, WAITING: 1, RUNNING: 2, EMPTY: 3}


class Group(Protocol):
    """A PodGroup, as the manager keeps it."""

    @property
    def gang_id(self) -> str:
        """Id of its gang."""

    @property
    def namespace(self) -> str:
        """Its namespace."""

    @property
    def gang(self) -> declaration.Gang | None:
        """What it declares."""

    @property
    def status(self) -> scheduling.PodGroupStatus:
        """Its status."""

    @property
    def fault(self) -> str:
        """Why it cannot be read."""


class Scopes(NamedTuple):
    """Where pods and PodGroups may be listed."""

    pods: scope.Scope
    groups: scope.Scope


def namespaces(index: pods.PodIndex, groups: Iterable[Group]) -> set[str]:
    """Return the namespaces that have gangs."""
    found = {gang.partition("/")[0] for gang in index.gangs}
    return found | {group.namespace for group in groups}


def document(
    index: pods.PodIndex, groups: Iterable[Group], scopes: Scopes, wanted: paging.Asked
) -> dict[str, Any]:
    """Return the gangs whose pods may be listed, those that lack members first."""
    shown = {one.gang_id: one for one in groups if scopes.groups.allows(one.namespace)}
    ids = dict.fromkeys((*shown, *index.gangs))
    rows = [
        _row(gang, shown.get(gang), index.of_gang(gang))
        for gang in ids
        if scopes.pods.allows(gang.partition("/")[0]) and wanted.text in gang.lower()
    ]
    states: dict[str, int] = {}
    for row in rows:
        states[row["state"]] = states.get(row["state"], 0) + 1
    if wanted.kind:
        rows = [row for row in rows if row["state"] == wanted.kind]
    rows.sort(key=lambda row: (_ORDER[row["state"]], row["since"] or 0, row["name"]))
    return {
        **paging.page(rows, wanted, lambda row: row),
        "states": states,
        "partial": scopes.pods.partial,
        "everywhere": scopes.pods.everywhere,
    }


def _row(gang: str, group: Group | None, members: Mapping[str, pods.Pod]) -> dict[str, Any]:
    waiting = [pod.waiting for pod in members.values() if pod.waiting is not None]
    placed = len(members) - len(waiting)
    minimum = max((pod.minimum for pod in members.values()), default=0)
    if group is not None and group.gang is not None:
        minimum = group.gang.min_member
    first = min(waiting, key=lambda one: one.since, default=None)
    return {
        "name": gang.removesuffix(declaration.NATIVE),
        "minimum": minimum,
        "members": len(members),
        "placed": placed,
        "nodes": len({pod.node for pod in members.values() if pod.node}),
        "state": _state(placed, len(members), minimum),
        "phase": group.status.phase if group is not None else "",
        "since": first.since if first is not None else None,
        "reason": (group.fault if group is not None else "") or (first.text if first else ""),
    }


def _state(placed: int, members: int, minimum: int) -> str:
    if not members:
        return EMPTY
    if not placed:
        return WAITING
    return RUNNING if placed >= minimum else PARTIAL
