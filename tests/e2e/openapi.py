"""The OpenAPI schemas of built-in kinds, taken from a real API server for the simulator.

`python -m tests.e2e.openapi` starts the release under test and writes what the simulator needs of
its OpenAPI v3 documents: the schemas of the kinds that it serves, without descriptions.
"""

import asyncio
import contextlib
import gzip
import json
import pathlib
import tempfile

from simulator.apiserver.registry import builtin_schemas, kinds
from simulator.processes import binaries as planes
from tests.e2e import binaries
from tests.planes import raw

PREFIX = "#/components/schemas/"
GVK = "x-kubernetes-group-version-kind"
METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
# Kinds of bodies that no resource is named after, with the document that describes them.
BODIES = (("", "v1", "Binding"), ("policy", "v1", "Eviction"), ("", "v1", "DeleteOptions"))
DROPPED = ("description", "externalDocs", GVK)
TARGET = pathlib.Path(builtin_schemas.__file__).parent / builtin_schemas.FILE


def wanted():
    """Group, version and kind of everything that the simulator reads."""
    served = ((k.group, k.resource.version, k.name) for k in kinds.BUILT_IN)
    return sorted({*served, *BODIES})


def collected(documents, release):
    """What the simulator needs of OpenAPI documents by group and version, as one value."""
    known = {}
    for document in documents.values():
        known.update(document["components"]["schemas"])
    names = {}
    for group, version, kind in wanted():
        api_version = f"{group}/{version}" if group else version
        gvk = {"group": group, "version": version, "kind": kind}
        # A subresource such as eviction is described where its resource is served.
        (names[f"{api_version}/{kind}"],) = [n for n, s in known.items() if gvk in s.get(GVK, ())]
    schemas = {}
    queue = [METADATA, *names.values()]
    while queue:
        name = queue.pop()
        if name not in schemas:
            schemas[name] = _stripped(known[name])
            queue += _references(known[name])
    ordered = {name: schemas[name] for name in sorted(schemas)}
    return {"release": release, "kinds": names, "schemas": ordered}


def packed(value):
    """The bytes of the file; equal values make equal bytes."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    return gzip.compress(text, compresslevel=9, mtime=0)


async def read(api):
    """The documents of an API server that describe what is wanted."""
    found = {}
    for group, version, _ in wanted():
        place = f"apis/{group}/{version}" if group else f"api/{version}"
        if (group, version) not in found:
            found[group, version] = await api.get(f"/openapi/v3/{place}")
    return found


def _stripped(value, *, names=False):
    """A schema without what only people read; `names` tells that the keys are fields."""
    if isinstance(value, dict):
        return {
            key: _stripped(inner, names=key == "properties" and not names)
            for key, inner in value.items()
            if names or key not in DROPPED
        }
    if isinstance(value, list):
        return [_stripped(inner) for inner in value]
    return value


def _references(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref" and isinstance(inner, str):
                yield inner.removeprefix(PREFIX)
            else:
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


async def _main():
    release = binaries.version()
    async with contextlib.AsyncExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        running = planes.running(binaries.build(release), folder / "state")
        plane = await stack.enter_async_context(running)
        api = await stack.enter_async_context(raw.connected(plane.server, plane.ca, plane.token))
        made = packed(collected(await read(api), release))
    TARGET.write_bytes(made)
    print(f"{TARGET}: Kubernetes {release}, {len(made)} bytes")


if __name__ == "__main__":
    asyncio.run(_main())
