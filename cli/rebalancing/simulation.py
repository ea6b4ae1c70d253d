"""`koord simulate rebalance`: which pods the descheduler would move; nothing is written."""

import argparse
import asyncio
from pathlib import Path
from typing import Final

from api import names
from cli import clusters
from cli.output import answers, terminal
from cli.rebalancing import live_cluster, round_preview
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
        "Run rounds of the descheduler on the cluster as it is, by its own plug-ins, filters, "
        "limits and objective and by the plug-ins of the extender, and show what the first round "
        "with a move would do. Nothing is written to the cluster. Exit code: 0 it was tried, 1 the "
        "cluster cannot be read, 2 the configuration or the arguments are wrong."
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
    clusters.add_arguments(parser)
    clusters.add_installation(parser)
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
    except (errors.KubeError, live_cluster.NotReadError) as error:
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
    clock = clocks.SystemClock()
    access = await clusters.connect(chosen)
    async with (
        clients.Client(access, clock=clock, user_agent="koord-simulate") as kube,
        supervise.Supervisor("simulate") as supervisor,
    ):
        live = live_cluster.LiveCluster(kube, clock, chosen.koord_namespace)
        text = text or await live.configuration()
        if not text:
            raise ArgumentError(
                f"ConfigMap {names.CONFIG_MAP_DESCHEDULER} in {chosen.koord_namespace} configures "
                "nothing; name a file with --configuration"
            )
        configured = round_preview.configured(text)
        await live.started(supervisor, chosen.timeout)
        fork = await live.fork()
        return round_preview.preview(configured, live.picture(), fork.targets, chosen.rounds)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > _LARGEST:
        raise ArgumentError(f"{path} is larger than {_LARGEST} bytes")
    return data.decode("utf-8", "replace")
