"""Takes a snapshot of a live cluster, and opens one that was saved."""

import argparse
import importlib.metadata
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import orjson

from api import names, resources
from api.kubernetes import core
from api.wire import durations
from cli import clusters, reading
from cli.output import progress
from cli.snapshot import format as formats
from cli.snapshot import projection
from kube.client import client as clients
from kube.client import errors, wire
from process.configuration import explained_error
from process.runtime import clock as clocks

NOT_INSTALLED: Final = formats.NOT_INSTALLED


class _Named(msgspec.Struct, frozen=True):
    metadata: core.ObjectMeta = core.ObjectMeta()


_NAMED: Final = msgspec.json.Decoder(_Named)


class FileError(explained_error.ExplainedError):
    """A file that cannot be read or written; names it and the reason."""


class UnreadError(explained_error.ExplainedError):
    """What a command cannot do without could not be read; names it and the reason."""


def add_arguments(parser: argparse.ArgumentParser, *, namespace_alias: bool = True) -> None:
    """Declare where the state is read from: a cluster, or a file.

    Without `namespace_alias`, ``--namespace`` is left to the command.
    """
    clusters.add_arguments(parser)
    clusters.add_installation(parser, alias=namespace_alias)
    parser.add_argument(
        "--snapshot",
        type=Path,
        metavar="FILE",
        help="read this file of `koord snapshot` instead of a cluster",
    )


async def opened(chosen: argparse.Namespace, clock: clocks.Clock) -> formats.Snapshot:
    """Return the state that a command is about: of the file that is named, else of the cluster."""
    if chosen.snapshot is not None:
        return load(chosen.snapshot)
    access = await clusters.connect(chosen)
    async with clients.Client(access, clock=clock, user_agent="koord-snapshot") as kube:
        with progress.bar() as step:
            return await taken(kube, clock, chosen.koord_namespace, step=step)


def demand(snapshot: formats.Snapshot, *kinds: resources.Resource) -> None:
    """Raise where one of these kinds could not be read: its absence must not pass for none."""
    for name in (kind.review_name() for kind in kinds):
        why = snapshot.unread.get(name, NOT_INSTALLED)
        if why != NOT_INSTALLED:
            raise UnreadError(f"{name} could not be read: {why}")


def load(path: Path) -> formats.Snapshot:
    """Read a snapshot from a file."""
    try:
        with path.open("rb") as file:
            data = file.read(formats.Bounds().packed + 1)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        return formats.decode(data)
    except formats.SnapshotError as error:
        raise FileError(f"{path} is no snapshot that can be read: {error}") from error


def save(path: Path, snapshot: formats.Snapshot) -> int:
    """Write a snapshot to a file that only its owner may read; return its size in bytes."""
    data = formats.encode(snapshot)
    try:
        path.touch(mode=0o600)
        path.write_bytes(data)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error
    return len(data)


async def taken(
    kube: clients.Client,
    clock: clocks.Clock,
    namespace: str = names.NAMESPACE,
    wanted: Sequence[resources.Resource] = projection.RESOURCES,
    step: progress.Step = progress.silent,
) -> formats.Snapshot:
    """Read what a snapshot holds from the API server; what cannot be read is named."""
    found: dict[str, tuple[formats.Raw, ...]] = {}
    unread: dict[str, str] = {}
    odd: list[str] = []
    for number, resource in enumerate(wanted):
        name = resource.review_name()
        step(f"reading {name}", number, len(wanted))
        if name in found:
            # An older version of what was read already.
            continue
        unread.pop(name, None)
        try:
            found[name] = tuple(
                [one async for one in _objects(kube, clients.Selection(resource), odd)]
            )
        except errors.ApiError as error:
            if not error.is_of_unserved_kind and not isinstance(error, errors.Forbidden):
                raise
            unread[name] = NOT_INSTALLED if error.is_of_unserved_kind else str(error)
    maps = []
    for name in projection.SETTINGS:
        selection = clients.Selection(
            resources.CONFIG_MAPS, namespace, fields=f"metadata.name={name}"
        )
        try:
            maps += [one async for one in _objects(kube, selection, odd)]
        except errors.Forbidden as error:
            unread[f"configmaps {name}"] = str(error)
    found[resources.CONFIG_MAPS.review_name()] = tuple(maps)
    return formats.Snapshot(
        taken_at=durations.moment(clock.now()),
        objects=found,
        unread=unread,
        unreadable=tuple(odd),
        product=importlib.metadata.version("koord"),
    )


async def _objects(
    kube: clients.Client, selection: clients.Selection, odd: list[str]
) -> AsyncIterator[formats.Raw]:
    """Yield the objects of a selection, each reduced as soon as its page is there."""
    query = {"limit": str(clients.PAGE)}
    resource = selection.resource
    while True:
        page, objects = wire.objects(await kube.page(selection, query))
        for raw, is_whole in objects:
            one = reading.either(None, _reduced, resource, raw) if is_whole else None
            if one is None:
                odd.append(f"{resource.kind} {_name(raw)}")
            else:
                yield one
        if not page.continue_:
            return
        query["continue"] = page.continue_


def _reduced(resource: resources.Resource, raw: msgspec.Raw) -> formats.Raw:
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **orjson.loads(bytes(raw))}
    return projection.kept(resource, whole)


def _name(raw: msgspec.Raw) -> str:
    named = reading.either(_Named(), _NAMED.decode, raw).metadata
    return named.key or "without a name"
