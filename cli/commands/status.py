"""The state of the cluster in one screen, or its devices, its Reservations or its gangs."""

import argparse
import asyncio
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich import console

from api import resources
from cli import clusters, scope, watching
from cli.devices import reader as device_reader
from cli.devices import table
from cli.gangs import cluster as gang_cluster
from cli.gangs import table as gangs
from cli.output import answers, terminal
from cli.reservations import cluster as reserved
from cli.reservations import table as reservations
from cli.snapshot import format as formats
from cli.snapshot import reader
from cli.view import overview, overview_reader, tables
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock, entry

_WIDE: Final = "wide"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord status`."""
    clusters.add_arguments(parser)
    clusters.add_installation(parser, alias=False)
    clusters.add_output(parser)
    scope.add_arguments(parser, "nodes, of Reservations or of gangs", every=True)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--devices",
        action="store_true",
        help="GPUs and other devices of every node: health, who holds what, and what is wrong",
    )
    shown.add_argument(
        "--reservations",
        action="store_true",
        help="every Reservation: phase, node, what it reserves, who uses it, what is left",
    )
    shown.add_argument(
        "--gangs",
        action="store_true",
        help="every gang: members, which of them have a place, and what it waits for",
    )
    parser.add_argument(
        "--snapshot",
        type=Path,
        metavar="FILE",
        help="read Reservations or gangs from this file instead",
    )
    watching.add_arguments(parser)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    return watching.run(chosen, _show)


def _show(chosen: argparse.Namespace) -> int:
    try:
        if chosen.snapshot is not None and not (chosen.reservations or chosen.gangs):
            terminal.warn("koord status: --snapshot is for --reservations and --gangs")
            return entry.BAD_SETTINGS
        if chosen.devices:
            return asyncio.run(_devices(chosen))
        if chosen.reservations:
            return asyncio.run(_reservations(chosen))
        if chosen.gangs:
            return asyncio.run(_gangs(chosen))
        shown = asyncio.run(_once(chosen))
    except (errors.KubeError, reader.FileError) as error:
        terminal.warn(f"koord status: {error}")
        return entry.FAILED
    if answers.is_document(chosen.output):
        answers.show(chosen.output, overview.as_json(shown))
        return entry.OK
    screen = console.Console()
    if sys.stdout.isatty() and chosen.output != _WIDE and screen.width >= tables.NARROWEST:
        screen.print(tables.render(shown, "koord"))
    else:
        terminal.lines(tables.lines(shown, wide=chosen.output == _WIDE))
    return entry.OK


async def _devices(chosen: argparse.Namespace) -> int:
    asked = scope.of(chosen)
    access = await clusters.connect(chosen)
    async with clients.Client(access, clock=clock.SystemClock(), user_agent="koord-status") as kube:
        found, notes = await device_reader.read(kube)
        chosen_nodes = await scope.named(kube, asked, resources.NODES)
    if chosen_nodes is not None:
        nodes = tuple(node for node in found.nodes if ("", node.name) in chosen_nodes)
        found = dataclasses.replace(found, nodes=nodes)
    if answers.is_document(chosen.output):
        answers.show(chosen.output, table.document(found, notes))
        return entry.OK
    if any(node.rows for node in found.nodes) or found.unreadable:
        terminal.lines(table.lines(found, wide=chosen.output == _WIDE))
    else:
        terminal.warn("no node has a Device object that lists devices")
    for note in notes:
        terminal.warn(f"note: {note}")
    return entry.OK


async def _reservations(chosen: argparse.Namespace) -> int:
    wanted = (resources.RESERVATIONS, resources.PODS, resources.NODES)
    asked = scope.of(chosen)
    found = reserved.build(await _objects(chosen, wanted))
    found = found.only(lambda one: asked.takes("", one.written.metadata.labels))
    if answers.is_document(chosen.output):
        answers.show(chosen.output, reservations.document(found))
        return entry.OK
    if found.listed:
        terminal.lines(reservations.lines(found, wide=chosen.output == _WIDE))
    else:
        terminal.warn(f"there is no Reservation{asked.place}")
    for note in found.notes:
        terminal.warn(f"note: {note}")
    return entry.OK


async def _gangs(chosen: argparse.Namespace) -> int:
    asked = scope.of(chosen)
    found = gang_cluster.build(await _objects(chosen, gang_cluster.RESOURCES))
    found = found.only(lambda one: asked.takes(one.declared.namespace, one.labels))
    if answers.is_document(chosen.output):
        answers.show(chosen.output, gangs.document(found))
        return entry.OK
    if found.listed:
        terminal.lines(gangs.lines(found, wide=chosen.output == _WIDE))
    else:
        terminal.warn(f"there is no gang{asked.place}")
    for note in found.notes:
        terminal.warn(f"note: {note}")
    return entry.OK


async def _objects(
    chosen: argparse.Namespace, wanted: Sequence[resources.Resource]
) -> formats.Snapshot:
    if chosen.snapshot is not None:
        return reader.load(chosen.snapshot)
    access = await clusters.connect(chosen)
    now = clock.SystemClock()
    async with clients.Client(access, clock=now, user_agent="koord-status") as kube:
        return await reader.taken(kube, now, chosen.koord_namespace, wanted)


async def _once(chosen: argparse.Namespace) -> overview.Picture:
    asked = scope.of(chosen)
    access = await clusters.connect(chosen)
    async with clients.Client(access, clock=clock.SystemClock(), user_agent="koord-status") as kube:
        picture = await overview_reader.read(kube, chosen.koord_namespace)
        nodes = await scope.named(kube, asked, resources.NODES)
    return overview.only(picture, nodes, asked.holds)
