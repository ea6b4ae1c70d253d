"""Quotas and pods of the teams as documents, and a recount of both. Pure."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from api import names, resources
from api.wire import quantity
from benchmarks.plane import feed, rig
from benchmarks.quota_churn import accounts

CPU_MILLI, MEMORY_MIB = 500, 512
"""What every pod asks for."""
SHAPE = resources.ELASTIC_QUOTAS
QUOTAS = SHAPE.path(rig.NAMESPACE)


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """How many teams there are, and how many pods each has."""

    teams: int
    running: int
    """Pods of a team that its quota has room for."""
    waiting: int
    """Pods of a team that wait."""

    @property
    def pods(self) -> int:
        """All pods."""
        return self.teams * (self.running + self.waiting)


def size(quotas: int, pods: int) -> Size:
    """Return teams of equal size, four fifths of whose pods run."""
    each = pods // quotas
    waiting = each // 5
    if waiting < 1:
        raise ValueError(f"{pods} pods are too few for {quotas} quotas: each needs five of them")
    return Size(quotas, each - waiting, waiting)


def team_name(team: int) -> str:
    """Return the name of a team's quota."""
    return f"team-{team:03d}"


def amounts(pods: int) -> dict[str, str]:
    """Return what so many pods ask for."""
    return {"cpu": f"{CPU_MILLI * pods}m", "memory": f"{MEMORY_MIB * pods}Mi"}


def quota(team: int, minimum: int, maximum: int) -> dict[str, Any]:
    """Return the quota of a team: between so many pods."""
    return {
        "apiVersion": SHAPE.api_version,
        "kind": SHAPE.kind,
        "metadata": {"name": team_name(team)},
        "spec": {"min": amounts(minimum), "max": amounts(maximum)},
    }


def pod(team: int, number: int, node: int | None = None, kilobytes: int = 7) -> dict[str, Any]:
    """Return a pod of a team, on a node already where one is given."""
    body = rig.waiting_pod(number, kilobytes)
    body["metadata"]["name"] = accounts.pod_name(team, number)
    body["metadata"]["labels"] |= {
        names.LABEL_PRIORITY_CLASS: "koord-prod",
        names.LABEL_QUOTA_NAME: team_name(team),
    }
    spec, asked = body["spec"], amounts(1)
    spec["containers"][0]["resources"] = {"requests": asked, "limits": asked}
    if node is not None:
        spec["nodeName"] = feed.node_name(node)
    return body


@dataclasses.dataclass(frozen=True, slots=True)
class Recount:
    """What differs between pods, quotas and the status of quotas; one sentence each."""

    excesses: tuple[str, ...]
    stale: tuple[str, ...]


def recount(pods: Iterable[Mapping[str, Any]], quotas: Sequence[Mapping[str, Any]]) -> Recount:
    """Add up the requests of pods with a node, and compare them with every quota."""
    used = _used(pods)
    excesses, stale = [], []
    for each in quotas:
        name = each["metadata"]["name"]
        said = (each.get("status") or {}).get("used") or {}
        for resource, text in each["spec"]["max"].items():
            found = used.get(name, {}).get(resource, 0)
            shown = f"{name}: pods use {quantity.text(resource, found)} of {resource}"
            if found > quantity.amount(resource, text):
                excesses.append(f"{shown}, max is {text}")
            if found != quantity.amount(resource, said.get(resource, "0")):
                stale.append(f"{shown}, its status says {said.get(resource, 'nothing')}")
    return Recount(tuple(excesses), tuple(stale))


def _used(pods: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    used: dict[str, dict[str, int]] = {}
    for each in pods:
        if not each["spec"].get("nodeName"):
            continue
        name = each["metadata"].get("labels", {}).get(names.LABEL_QUOTA_NAME, "")
        into = used.setdefault(name, {})
        for container in each["spec"]["containers"]:
            for resource, text in container["resources"].get("requests", {}).items():
                into[resource] = into.get(resource, 0) + quantity.amount(resource, text)
    return used
