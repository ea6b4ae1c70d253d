"""The state of the cluster in one screen, or its devices."""

import argparse
import asyncio
import sys

from rich import console

from cli import clusters
from cli.devices import reader, table
from cli.output import terminal
from cli.view import overview, overview_reader, tables
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock, entry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord status`."""
    clusters.add_arguments(parser)
    clusters.add_installation(parser)
    clusters.add_output(parser)
    parser.add_argument(
        "--devices",
        action="store_true",
        help="GPUs and other devices of every node: health, who holds what, and what is wrong",
    )
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    try:
        if chosen.devices:
            return asyncio.run(_devices(chosen))
        shown = asyncio.run(_once(chosen))
    except errors.KubeError as error:
        terminal.warn(f"koord status: {error}")
        return entry.FAILED
    if chosen.output == "json":
        terminal.document(overview.as_json(shown))
    elif sys.stdout.isatty():
        console.Console().print(tables.render(shown, "koord"))
    else:
        terminal.lines(tables.lines(shown))
    return entry.OK


async def _devices(chosen: argparse.Namespace) -> int:
    access = await clusters.connect(chosen)
    async with clients.Client(access, clock=clock.SystemClock(), user_agent="koord-status") as kube:
        found, notes = await reader.read(kube)
    if chosen.output == "json":
        terminal.document(table.document(found, notes))
        return entry.OK
    if any(node.rows for node in found.nodes) or found.unreadable:
        terminal.lines(table.lines(found))
    else:
        terminal.warn("no node has a Device object that lists devices")
    for note in notes:
        terminal.warn(f"note: {note}")
    return entry.OK


async def _once(chosen: argparse.Namespace) -> overview.Picture:
    access = await clusters.connect(chosen)
    async with clients.Client(access, clock=clock.SystemClock(), user_agent="koord-status") as kube:
        return await overview_reader.read(kube, chosen.koord_namespace)
