"""`koord report`: what colocation gave in the last days, or would give before an installation."""

import argparse
import asyncio
from pathlib import Path
from typing import Any, Final

from api import names, resources
from cli import clusters
from cli.output import answers, progress, report_files, terminal, written_reports
from cli.prometheus import client as prometheus
from cli.prometheus import options as prometheus_options
from cli.report import day_sums, measured_use, own_metrics, past, uses, would
from cli.snapshot import reader
from kube.client import client as clients
from kube.client import errors
from process.configuration import explained_error
from process.runtime import clock as clocks
from process.runtime import entry

_MOST_DAYS: Final = 90
_READ: Final = (resources.PODS, resources.NODES)


class ArgumentError(explained_error.ExplainedError):
    """What was asked cannot be reported; says what to write instead."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord report`."""
    parser.description = (
        "Say what colocation gave in the last days: lent, held, used, given back, evictions and "
        "waiting, by team, from the daily sums that the manager keeps or from a Prometheus. With "
        "--would, before an installation: what it would give, from metrics alone."
    )
    parser.add_argument(
        "--would", action="store_true",
        help="what it would give a cluster without Koord, by metrics.k8s.io or --prometheus",
    )  # fmt: skip
    parser.add_argument(
        "--days", type=int, default=7, metavar="NUMBER",
        help="how many days back (default %(default)s)",
    )  # fmt: skip
    prometheus_options.add_arguments(parser, "ask this Prometheus, as in http://host:9090")
    parser.add_argument(
        "--format", default="", choices=("", *written_reports.FORMATS), metavar="FORMAT",
        help="html, markdown or csv; by default what the name of --to says, else markdown",
    )  # fmt: skip
    parser.add_argument("--to", type=Path, metavar="FILE", help="write the report to this file")
    report_files.add_picture(parser)
    clusters.add_arguments(parser)
    clusters.add_installation(parser)
    clusters.add_output(parser)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    try:
        report_files.check(chosen)
        report, body = asyncio.run(_reported(chosen, clocks.SystemClock()))
        if chosen.to is not None:
            text = written_reports.written(report, _format(chosen))
            report_files.written(chosen.to, text.encode())
        report_files.write_picture(chosen, report)
    except (
        ArgumentError,
        prometheus.PrometheusError,
        measured_use.MetricsError,
        own_metrics.NoMetricsError,
        day_sums.NoSumsError,
        report_files.PictureError,
        report_files.FileError,
    ) as error:
        terminal.warn(f"koord report: {error}")
        return entry.BAD_SETTINGS
    except errors.KubeError as error:
        terminal.warn(f"koord report: {error}")
        return entry.FAILED
    if answers.is_document(chosen.output):
        answers.show(chosen.output, body)
    elif chosen.to is None:
        terminal.written(written_reports.written(report, _format(chosen)))
    return entry.OK


def _format(chosen: argparse.Namespace) -> str:
    if chosen.format:
        return str(chosen.format)
    ending = "" if chosen.to is None else chosen.to.suffix
    return {".html": "html", ".htm": "html", ".csv": "csv"}.get(ending, "markdown")


async def _reported(
    chosen: argparse.Namespace, clock: clocks.Clock
) -> tuple[written_reports.Report, dict[str, Any]]:
    """Return the report, and the same as a document."""
    if not 1 <= chosen.days <= _MOST_DAYS:
        raise ArgumentError(f"--days {chosen.days}: write a number from 1 to {_MOST_DAYS}")
    if chosen.would:
        found = await _would(chosen, clock)
        return would.report(found), would.document(found)
    gave = await _gave(chosen, clock)
    return past.report(gave), past.document(gave)


async def _would(chosen: argparse.Namespace, clock: clocks.Clock) -> would.Would:
    access = await clusters.connect(chosen)
    async with clients.Client(access, clock=clock, user_agent="koord-report") as kube:
        with progress.bar() as step:
            snapshot = await reader.taken(kube, clock, chosen.koord_namespace, _READ, step)
            step("reading metrics", 1, 2)
            if chosen.prometheus:
                measured = await _from_prometheus(chosen, clock)
            else:
                measured = await measured_use.now(kube)
    return would.calculated(snapshot, measured)


async def _from_prometheus(chosen: argparse.Namespace, clock: clocks.Clock) -> uses.Measured:
    async with prometheus_options.opened(chosen) as source:
        return await measured_use.over_days(source, chosen.days, clock.now())


async def _gave(chosen: argparse.Namespace, clock: clocks.Clock) -> past.Past:
    if chosen.prometheus:
        async with prometheus_options.opened(chosen) as source:
            return await own_metrics.over_days(source, chosen.days, clock.now())
    access = await clusters.connect(chosen)
    async with clients.Client(access, clock=clock, user_agent="koord-report") as kube:
        name, namespace = names.CONFIG_MAP_REPORT, chosen.koord_namespace
        try:
            found = await kube.get(resources.CONFIG_MAPS, name, namespace)
        except errors.NotFound:
            found = {}
    return day_sums.past_of(found.get("data"), chosen.days, clock.now())
