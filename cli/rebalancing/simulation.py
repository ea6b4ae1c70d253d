"""`koord simulate rebalance`: which pods the descheduler would move; nothing is written."""

import argparse
import asyncio
import dataclasses
from pathlib import Path
from typing import Final

from api import names
from cli import clusters
from cli.output import answers, terminal
from cli.rebalancing import live_cluster, round_preview, saved_cluster
from cli.snapshot import reader
from kube.client import client as clients
from kube.client import errors
from process.configuration import explained_error
from process.runtime import clock as clocks
from process.runtime import entry, supervise

_LARGEST: Final = 1 << 20
_MOST_ROUNDS: Final = 100


class ArgumentError(explained_error.ExplainedError):
    """What was asked cannot be tried; says what to write instead."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord simulate rebalance`."""
    parser.description = (
        "Run rounds of the descheduler on the cluster as it is, or on a snapshot of one, by its "
        "own plug-ins, filters, limits and objective and by the plug-ins of the extender, and show "
        "what the first round with a move would do. Nothing is written to the cluster. Exit code: "
        "0 it was tried, 1 the cluster or the file cannot be read, 2 the configuration or the "
        "arguments are wrong."
    )
    parser.add_argument(
        "--configuration",
        type=Path,
        metavar="FILE",
        help="a DeschedulerConfiguration to try; else that of the installation",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=10,
        metavar="NUMBER",
        help="how many rounds to try on unchanged load, since a node counts as overloaded only "
        "after several (default %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long reading the cluster may take (default %(default)s)",
    )
    reader.add_arguments(parser)
    clusters.add_output(parser)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    return asyncio.run(simulated(chosen))


async def simulated(chosen: argparse.Namespace) -> int:
    """Do what the arguments ask for; return the exit code."""
    try:
        found = await _preview(chosen)
    except (ArgumentError, round_preview.ConfigurationError) as error:
        terminal.warn(f"koord simulate: {error}")
        return entry.BAD_SETTINGS
    except (errors.KubeError, live_cluster.NotReadError, reader.FileError) as error:
        terminal.warn(f"koord simulate: {error}")
        return entry.FAILED
    if answers.is_document(chosen.output):
        answers.show(chosen.output, round_preview.document_of(found))
    else:
        terminal.lines(round_preview.lines(found))
    return entry.OK


async def _preview(chosen: argparse.Namespace) -> round_preview.Preview:
    if not 1 <= chosen.rounds <= _MOST_ROUNDS:
        raise ArgumentError(f"--rounds is {chosen.rounds}; name a number from 1 to {_MOST_ROUNDS}")
    text = _read(chosen.configuration) if chosen.configuration is not None else ""
    if chosen.snapshot is not None:
        return await _of_snapshot(chosen, text)
    clock = clocks.SystemClock()
    access = await clusters.connect(chosen)
    async with (
        live_cluster.quiet(),
        clients.Client(access, clock=clock, user_agent="koord-simulate") as kube,
        supervise.Supervisor("simulate") as supervisor,
    ):
        live = live_cluster.LiveCluster(kube, clock, chosen.koord_namespace)
        configured = _configured(text or await live.configuration(), f"in {chosen.koord_namespace}")
        await live.started(supervisor, chosen.timeout)
        fork = await live.fork()
        seen = dataclasses.replace(live.picture(), fragments=fork.fragments)
        return round_preview.preview(configured, seen, fork.targets(seen), chosen.rounds)


async def _of_snapshot(chosen: argparse.Namespace, text: str) -> round_preview.Preview:
    saved = saved_cluster.SavedCluster(reader.load(chosen.snapshot), chosen.koord_namespace)
    text = text or saved.configuration()
    configured = _configured(text, "of the snapshot")
    seen, targets = await saved.look()
    found = round_preview.preview(configured, seen, targets, chosen.rounds)
    return dataclasses.replace(found, warnings=(*found.warnings, *saved.notes(text)))


def _configured(text: str, where: str) -> round_preview.Configured:
    if not text:
        raise ArgumentError(
            f"ConfigMap {names.CONFIG_MAP_DESCHEDULER} {where} configures nothing; name a file "
            "with --configuration"
        )
    return round_preview.configured(text)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > _LARGEST:
        raise ArgumentError(f"{path} is larger than {_LARGEST} bytes")
    return data.decode("utf-8", "replace")
