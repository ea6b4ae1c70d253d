"""Our kinds on a control plane, for tests that need no whole installation."""

import contextlib
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
        await served(api, definition)


async def served(api, definition, patience=raw.PATIENCE):
    """Wait until the API server serves a kind, which is a moment after its definition says so."""
    path = resources.CRDS.path(name=definition["metadata"]["name"])
    await api.wait_until(path, established, patience)
    group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
    for version in definition["spec"]["versions"]:

        async def answers(base=f"/apis/{group}/{version['name']}"):
            listed = (await api.call("GET", base)).body.get("resources", ())
            known = plural in {one["name"] for one in listed}
            return known and (await api.call("GET", f"{base}/{plural}")).status == 200

        await raw.eventually(answers, patience)


@contextlib.asynccontextmanager
async def defined(api, *kinds):
    """The definitions of these resources; what was not defined before is gone afterwards."""
    names = {one.review_name() for one in kinds}
    chosen = [one for one in crds.definitions() if one["metadata"]["name"] in names]
    made = []
    for definition in chosen:
        answer = await api.call("POST", resources.CRDS.path(), definition)
        assert answer.status in (201, 409), answer.message
        made += [definition["metadata"]["name"]] if answer.status == 201 else []
    for definition in chosen:
        await served(api, definition)
    try:
        yield
    finally:
        for name in made:
            await removed(api, name)


async def removed(api, name):
    """Delete a definition and wait until it is gone.

    The API server keeps it for as long as it clears away what there is of the kind, and goes on
    serving that: a test that defined the kind anew would find it there, and lose it a moment later.
    """
    path = resources.CRDS.path(name=name)
    await api.delete(path)
    await api.wait_until(path, lambda found: found is None)


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
    """Tell whether the API server has accepted what a definition defines."""
    conditions = (definition or {}).get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
