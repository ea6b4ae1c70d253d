"""Apply manifests, as `kubectl apply --server-side` does."""

import importlib.resources
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from api import resources
from api.kubernetes import crds
from kube.client import client as clients
from kube.client import errors
from process.configuration import explained_error
from process.runtime import clock as clocks

MANAGER = "koord-dev"
PATIENCE_SECONDS = 30.0

_BY_KIND: Mapping[tuple[str, str], resources.Resource] = {
    (found.api_version, found.kind): found
    for found in vars(resources).values()
    if isinstance(found, resources.Resource)
}


class ApplyError(explained_error.ExplainedError):
    """A manifest that could not be applied; names the object and the reason."""


def documents(*names: str) -> list[dict[str, Any]]:
    """Read the objects of files that come with the command."""
    folder = importlib.resources.files("cli") / "assets"
    texts = [(folder / name).read_text(encoding="utf-8") for name in names]
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


async def definitions(kube: clients.Client, clock: clocks.Clock) -> int:
    """Apply every custom resource definition and wait until all are served; returns how many."""
    wanted = list(crds.documents().values())
    for document in wanted:
        await one(kube, document)
    for document in wanted:
        name = document["metadata"]["name"]
        deadline = clock.monotonic() + PATIENCE_SECONDS
        while not _established(await kube.get(resources.CRDS, name)):
            if clock.monotonic() > deadline:
                raise ApplyError(f"{name} is not served after {PATIENCE_SECONDS:.0f} s")
            await clock.sleep(0.1)
    return len(wanted)


async def everything(kube: clients.Client, wanted: Iterable[Mapping[str, Any]]) -> None:
    """Apply objects in their order."""
    for document in wanted:
        await one(kube, document)


async def one(kube: clients.Client, document: Mapping[str, Any]) -> None:
    """Apply one object."""
    kind, metadata = str(document["kind"]), document["metadata"]
    resource = _BY_KIND.get((str(document["apiVersion"]), kind))
    if resource is None:
        raise ApplyError(f"{document['apiVersion']} {kind} is no kind that this command knows")
    try:
        await kube.patch(
            resource,
            metadata["name"],
            document,
            namespace=metadata.get("namespace", ""),
            kind=clients.Patch.APPLY,
            field_manager=MANAGER,
            force=True,
        )
    except errors.KubeError as error:
        raise ApplyError(f"{kind} {metadata['name']}: {error}") from error


def _established(definition: Mapping[str, Any]) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
