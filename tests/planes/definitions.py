"""Our kinds on a control plane, for tests that need no whole installation."""

from collections.abc import Iterable
from typing import Any

from api import resources
from api.kubernetes import crds
from kube.client import client
from simulator import cluster
from simulator.apiserver import apiserver
from tests.planes import raw

ALL = frozenset(one.resource.kind for one in crds.DEFINITIONS)
_STORED: dict[str, list[dict[str, Any]]] = {}
"""What a simulated API server made of the definitions, by kind."""


async def serve(api, *kinds):
    """Create the definitions of these kinds, of all without any, and wait until they are served."""
    for definition in crds.definitions():
        if kinds and definition["spec"]["names"]["kind"] not in kinds:
            continue
        await api.call("POST", resources.CRDS.path(), definition)
        path = resources.CRDS.path(name=definition["metadata"]["name"])
        await api.wait_until(path, established, raw.PATIENCE)


async def store(
    plane: apiserver.ApiServer | cluster.Plane, admin: client.Client, kinds: Iterable[str] = ALL
) -> None:
    """Let a simulated API server serve these kinds of ours, all of them unless some are named.

    The first one in a process is asked over HTTP. All others are given what that one has stored:
    to read, check and default fifteen definitions takes longer than many tests.
    """
    known = [one for kind in sorted(kinds) for one in _STORED.get(kind, ())]
    for definition in known:
        plane.objects.create(resources.CRDS, definition)
    missing = set(kinds) - _STORED.keys()
    for definition in crds.definitions() if missing else ():
        kind, name = definition["spec"]["names"]["kind"], definition["metadata"]["name"]
        if kind in missing:
            await admin.create(resources.CRDS, definition)
            _STORED.setdefault(kind, []).append(plane.objects.get(resources.CRDS, name))


def established(definition):
    """Tell whether the API server serves what a definition defines."""
    conditions = (definition or {}).get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
