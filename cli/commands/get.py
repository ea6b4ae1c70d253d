"""`koord get`: objects of several API groups as one list."""

import argparse
import asyncio
from collections.abc import Collection, Mapping, Sequence

from api import resources
from cli import clusters, scope, watching
from cli.output import answers, terminal
from cli.quota import cluster, table
from cli.snapshot import reader
from kube.client import errors
from process.runtime import clock as clocks
from process.runtime import entry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord get`."""
    what = parser.add_subparsers(title="what", metavar="WHAT", required=True)
    quota = what.add_parser(
        "quota",
        aliases=["quotas", "elasticquota", "elasticquotas", "eq"],
        help="ElasticQuotas of all three API groups with what they use, borrow and lend",
    )
    quota.add_argument("names", nargs="*", metavar="NAME", help="only these quotas")
    scope.add_arguments(quota, "quotas")
    clusters.add_output(quota)
    reader.add_arguments(quota, namespace_alias=False)
    watching.add_arguments(quota)
    quota.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    return watching.run(chosen, _show)


def _show(chosen: argparse.Namespace) -> int:
    try:
        snapshot = asyncio.run(reader.opened(chosen, clocks.SystemClock()))
        if not any(map(snapshot.of, resources.QUOTA_RESOURCES)):
            reader.demand(snapshot, *resources.QUOTA_RESOURCES)
    except (errors.KubeError, reader.FileError, reader.UnreadError) as error:
        terminal.warn(f"koord get: {error}")
        return entry.FAILED
    found = cluster.build(snapshot)
    every = table.rows(found)
    asked = scope.of(chosen)
    shown = _chosen(every, frozenset(chosen.names), asked, cluster.labels(snapshot))
    notes = (*found.notes, *found.forest.conflicts())
    if answers.is_document(chosen.output):
        answers.show(chosen.output, table.document(shown, notes))
    else:
        if shown:
            terminal.lines(table.lines(shown, wide=chosen.output == "wide"))
        for note in notes:
            terminal.warn(f"note: {note}")
    return _missing(every, shown, chosen.names, asked)


def _chosen(
    every: Sequence[table.Row],
    wanted: Collection[str],
    asked: scope.Scope,
    labels: Mapping[tuple[str, str, str], Mapping[str, str]],
) -> tuple[table.Row, ...]:
    return tuple(
        row
        for row in every
        if asked.takes(row.namespace, labels.get((row.api_version, row.namespace, row.name), {}))
        and (not wanted or row.name in wanted)
    )


def _missing(
    every: Sequence[table.Row], shown: Sequence[table.Row], names: Sequence[str], asked: scope.Scope
) -> int:
    """Say which quotas there are not; return the exit code."""
    absent = [name for name in names if name not in {row.name for row in shown}]
    for name in absent:
        terminal.warn(f"koord get: {table.unknown(name, [row.name for row in every])}")
    if not shown and not absent:
        terminal.warn(f"no ElasticQuota{asked.place}")
    return entry.FAILED if absent else entry.OK
