"""`koord simulate`: what a change would do, on a live cluster or a snapshot; nothing is written."""

import argparse
import asyncio
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from api.wire import durations
from cli import clusters, reading
from cli.output import terminal
from cli.quota import changes, cluster, comparison, preemptor
from cli.snapshot import reader
from kube.client import errors
from process.configuration import explained_error
from process.runtime import clock as clocks
from process.runtime import entry

_LONGEST_FILE = 8 << 20


class ArgumentError(explained_error.ExplainedError):
    """What was asked cannot be tried; says what to write instead."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord simulate`."""
    what = parser.add_subparsers(title="what", metavar="WHAT", required=True)
    quota = what.add_parser(
        "quota",
        help="what changed quotas would do: who starts, who is evicted, who keeps waiting",
    )
    quota.description = (
        "Play the cluster forward with and without a change of quotas, by the functions that the "
        "manager and the extender decide with. Nothing is written to the cluster. Pods that "
        "controllers would create anew for evicted ones are not played."
    )
    quota.add_argument(
        "--set",
        dest="flags",
        action="append",
        default=[],
        metavar="QUOTA.FIELD.RESOURCE=AMOUNT",
        help="a min, max, hard, weight or (tree) total, as in team-a.min.cpu=50; `none` removes "
        "it; also team-a.priority=10 and total.cpu=400 of the cluster",
    )
    quota.add_argument(
        "-f", "--file", type=Path, action="append", default=[], help="changed or new ElasticQuotas"
    )
    quota.add_argument("--delete", action="append", default=[], metavar="QUOTA")
    quota.add_argument(
        "--duration",
        action="append",
        default=[],
        metavar="QUOTA=TIME",
        help="how long pods of a quota run, as in batch=30m; without it: what finished pods of "
        "the same owner took, else activeDeadlineSeconds, else they run on",
    )
    quota.add_argument(
        "--ahead", default="24h", metavar="TIME", help="how far to look (default %(default)s)"
    )
    quota.add_argument("--save", type=Path, metavar="FILE", help="keep the state that was read")
    reader.add_arguments(quota)
    clusters.add_output(quota)
    quota.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    try:
        snapshot = asyncio.run(reader.opened(chosen, clocks.SystemClock()))
        if chosen.save is not None:
            reader.save(chosen.save, snapshot)
        found = compared(cluster.build(snapshot), chosen)
    except (changes.ChangeError, ArgumentError) as error:
        terminal.warn(f"koord simulate: {error}")
        return entry.BAD_SETTINGS
    except (errors.KubeError, reader.FileError) as error:
        terminal.warn(f"koord simulate: {error}")
        return entry.FAILED
    if chosen.output == "json":
        terminal.document(comparison.document(found))
    else:
        terminal.lines(comparison.lines(found))
    return entry.OK


def compared(found: cluster.Cluster, chosen: argparse.Namespace) -> comparison.Comparison:
    """Play a cluster with and without the changes that are asked for."""
    documents = [document for path in chosen.file for document in read(path)]
    changed = changes.apply(
        found.forest, found.quotas, chosen.flags, documents, chosen.delete, found.weighed
    )
    declared = dict(_duration(text, found) for text in chosen.duration)
    ahead = _seconds("--ahead", chosen.ahead)
    return comparison.Comparison(
        found,
        changed.said,
        changed.forest,
        preemptor.play(found, ahead, declared),
        preemptor.play(
            dataclasses.replace(found, forest=changed.forest), ahead, declared, changed.more
        ),
        (*found.notes, *changed.forest.conflicts()),
    )


def _duration(text: str, found: cluster.Cluster) -> tuple[str, float]:
    name, _, value = text.partition("=")
    if found.forest.figures(name) is None:
        raise ArgumentError(f"--duration {text}: there is no ElasticQuota {name}")
    return name, _seconds(f"--duration {name}", value)


def _seconds(flag: str, text: str) -> float:
    try:
        seconds = durations.seconds(text)
    except ValueError as error:
        raise ArgumentError(f"{flag}: {error}") from error
    if seconds <= 0:
        raise ArgumentError(f"{flag}: {text} is no time to come")
    return seconds


def read(path: Path) -> Sequence[dict[str, Any]]:
    """Read the objects of a YAML file; lists are unpacked."""
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST_FILE + 1)
        if len(data) > _LONGEST_FILE:
            raise ArgumentError(f"{path} is larger than {_LONGEST_FILE >> 20} MiB")
        documents = [one for one in yaml.safe_load_all(data) if one is not None]
    except (OSError, yaml.YAMLError, *reading.UNREADABLE) as error:
        raise ArgumentError(f"{path} cannot be read: {error}") from error
    found = []
    for one in documents:
        items = one.get("items") if isinstance(one, dict) else None
        found += items if isinstance(items, list) else [one]
    if not found or not all(isinstance(one, dict) for one in found):
        raise ArgumentError(f"{path} holds no objects")
    return found
