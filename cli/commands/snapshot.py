"""`koord snapshot`: write the state of a cluster to a file that simulations start from."""

import argparse
import asyncio
from pathlib import Path

from api import resources
from cli.output import terminal
from cli.snapshot import reader, renaming
from domain import wording
from kube.client import errors
from process.runtime import clock as clocks
from process.runtime import entry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord snapshot`."""
    parser.description = (
        "Write nodes with their CPUs and devices, pods, quotas, Reservations, priority classes, "
        "disruption budgets and our settings to one compressed file. Environments, commands, "
        "images, addresses and foreign annotations are left out."
    )
    reader.add_arguments(parser)
    parser.add_argument(
        "--to", "-o", type=Path, required=True, metavar="FILE", help="the file to write"
    )
    parser.add_argument(
        "--rename",
        action="store_true",
        help="replace the names of pods, namespaces, nodes, quotas, and label values",
    )
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    try:
        snapshot = asyncio.run(reader.opened(chosen, clocks.SystemClock()))
        reader.demand(snapshot, resources.PODS, resources.NODES)
        if chosen.rename:
            snapshot = renaming.renamed(snapshot)
        size = reader.save(chosen.to, snapshot)
    except (errors.KubeError, reader.FileError, reader.UnreadError) as error:
        terminal.warn(f"koord snapshot: {error}")
        return entry.FAILED
    count = sum(map(len, snapshot.objects.values()))
    written = wording.count(count, "object", "objects")
    terminal.say(f"wrote {written} ({size / 1024:.0f} KiB) to {chosen.to}")
    for what, why in sorted(snapshot.unread.items()):
        terminal.warn(f"note: {what} is not in it: {why}")
    for one in snapshot.unreadable[:20]:
        terminal.warn(f"note: {one} has an unexpected shape and is left out")
    return entry.OK
