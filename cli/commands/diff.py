"""`koord diff`: what cluster settings or profiles in files would do before they are applied."""

import argparse
import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from api import names, resources
from api.koordinator import colocation
from api.wire import base
from cli import clusters, reading
from cli.doctor.checkup import facts
from cli.output import answers, terminal
from cli.previews import class_changes, lending_changes
from kube.client import client as clients
from kube.client import errors
from process.configuration import explained_error
from process.runtime import clock as clocks
from process.runtime import entry

_LONGEST_FILE: Final = 8 << 20
_NOTE: Final = "pods that run keep their class: a profile changes pods when they are created"


class FileError(explained_error.ExplainedError):
    """A file that holds nothing to compare; says what to write."""


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """What the files would change."""

    settings: Mapping[str, str] | None
    """Data of the ConfigMap of the cluster settings; None: unchanged."""
    profiles: tuple[colocation.ClusterColocationProfile, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord diff`."""
    parser.description = (
        f"Compare files with the cluster. A ConfigMap {names.CONFIG_MAP_SLO}: which nodes would "
        "lend other amounts. A ClusterColocationProfile: which pods would get other classes if "
        "they were created anew. Calculated by the functions of the manager and of the webhook; "
        "nothing is written. Exit code: 0 nothing differs, 1 something does, 2 bad arguments or "
        "the API server cannot be asked."
    )
    parser.add_argument("-f", "--file", type=Path, action="append", required=True, metavar="FILE")
    clusters.add_arguments(parser)
    clusters.add_installation(parser)
    clusters.add_output(parser)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    try:
        asked = read([document for path in chosen.file for document in _documents(path)])
        lent, classed = asyncio.run(_compared(chosen, asked))
    except (FileError, errors.KubeError) as error:
        terminal.warn(f"koord diff: {error}")
        return entry.BAD_SETTINGS
    if answers.is_document(chosen.output):
        body = {
            "lending": None if lent is None else lending_changes.document(lent),
            "profiles": [dataclasses.asdict(one) for one in classed],
        }
        answers.show(chosen.output, body)
    else:
        if lent is not None:
            terminal.lines(lending_changes.lines(lent))
        for one in classed:
            terminal.lines(class_changes.lines(one))
        if any(one.changes for one in classed):
            terminal.warn(f"note: {_NOTE}")
    differs = (lent is not None and lent.changes) or any(one.changes for one in classed)
    return entry.FAILED if differs else entry.OK


def read(documents: Sequence[Any]) -> Asked:
    """Read what files ask for; other kinds are refused by name."""
    settings: Mapping[str, str] | None = None
    profiles: list[colocation.ClusterColocationProfile] = []
    for body in documents:
        kind = body.get("kind") if isinstance(body, dict) else None
        metadata = body.get("metadata") if isinstance(body, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if kind == "ConfigMap" and name == names.CONFIG_MAP_SLO:
            data = body.get("data") or {}
            if not isinstance(data, dict) or not all(isinstance(v, str) for v in data.values()):
                raise FileError(f"ConfigMap {name}: data: write texts under keys")
            settings = data
        elif kind == resources.COLOCATION_PROFILES.kind:
            try:
                profiles.append(colocation.read_profile(body))
            except (base.ReadError, *reading.UNREADABLE) as error:
                raise FileError(f"{kind} {name}: {error}") from error
        else:
            raise FileError(
                f"{kind or 'a document'} {name or ''}: only a ConfigMap {names.CONFIG_MAP_SLO} and "
                "ClusterColocationProfiles are compared"
            )
    if settings is None and not profiles:
        raise FileError("the files hold no objects")
    return Asked(settings, tuple(profiles))


def _documents(path: Path) -> list[Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST_FILE + 1)
        if len(data) > _LONGEST_FILE:
            raise FileError(f"{path} is larger than {_LONGEST_FILE >> 20} MiB")
        return [one for one in yaml.safe_load_all(data) if one is not None]
    except (OSError, yaml.YAMLError, *reading.UNREADABLE) as error:
        raise FileError(f"{path} cannot be read: {reading.refusal(error)}") from error


async def _compared(
    chosen: argparse.Namespace, asked: Asked
) -> tuple[lending_changes.Changes | None, list[class_changes.Changes]]:
    access = await clusters.connect(chosen)
    clock = clocks.SystemClock()
    async with clients.Client(access, clock=clock, user_agent="koord-diff") as kube:
        return await compared(kube, asked, chosen.koord_namespace, clock)


async def compared(
    kube: clients.Client, asked: Asked, namespace: str, clock: clocks.Clock
) -> tuple[lending_changes.Changes | None, list[class_changes.Changes]]:
    """Read the cluster and compare it with what is asked for."""
    pods = (await kube.list(resources.PODS)).items
    lent = None
    if asked.settings is not None:
        nodes = (await kube.list(resources.NODES)).items
        metrics = (await kube.list(resources.NODE_METRICS)).items
        try:
            found = await kube.get(resources.CONFIG_MAPS, names.CONFIG_MAP_SLO, namespace)
        except errors.NotFound:
            found = {}
        seen = lending_changes.Cluster(nodes, pods, metrics)
        lent = lending_changes.compared(seen, found.get("data"), asked.settings, clock)
    if not asked.profiles:
        return lent, []
    homes = (await kube.list(resources.NAMESPACES)).items
    classes = (await kube.list(resources.PRIORITY_CLASSES)).items
    cluster = class_changes.Cluster(
        pods,
        {
            reading.either("", facts.name, one): reading.either({}, facts.meta, one, "labels")
            for one in homes
        },
        class_changes.priority_classes(classes),
    )
    return lent, [class_changes.compared(cluster, profile) for profile in asked.profiles]
