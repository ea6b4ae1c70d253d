"""Our kinds on a control plane, for tests that need no whole installation."""

from collections.abc import Iterable
from typing import Any

from api import resources
from api.kubernetes import crds
from kube.client import client
from simulator.apiserver import apiserver
from tests.planes import raw

_STORED: dict[str, dict[str, Any]] = {}
"""What a simulated API server made of each definition, by name."""


async def serve(api, *kinds):
    """Create the definitions of these kinds, of all without any, and wait until they are served."""
    for definition in crds.definitions():
        if kinds and definition["spec"]["names"]["kind"] not in kinds:
            continue
        await api.call("POST", resources.CRDS.path(), definition)
        path = resources.CRDS.path(name=definition["metadata"]["name"])
        await api.wait_until(path, established, raw.PATIENCE)


async def store(plane: apiserver.ApiServer, admin: client.Client, kinds: Iterable[str]) -> None:
    """Let a simulated API server serve these kinds of ours.

    The first one in a process is asked over HTTP. All others are given what that one has stored:
    to read, check and default fifteen definitions takes longer than many tests.
    """
    for definition in crds.definitions():
        name = definition["metadata"]["name"]
        if definition["spec"]["names"]["kind"] not in kinds:
            continue
        if name in _STORED:
            plane.objects.create(resources.CRDS, _STORED[name])
            continue
        await admin.create(resources.CRDS, definition)
        made = plane.objects.get(resources.CRDS, name)
        _STORED[name] = {part: value for part, value in made.items() if part != "status"}


def established(definition):
    """Tell whether the API server serves what a definition defines."""
    conditions = (definition or {}).get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
