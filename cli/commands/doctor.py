"""Check an installation and say for each thing what it means and what to do."""

import argparse
import asyncio
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from cli import clusters
from cli.doctor import installed, node_strategies, support_bundle, survey
from cli.doctor.checkup import checks, findings
from cli.output import answers, terminal
from kube.client import access as accesses
from kube.client import client as clients
from kube.client import errors, transport
from process.runtime import clock as clocks
from process.runtime import entry

LIMITS: Final = transport.Limits(request_seconds=15.0, attempts=2)
SIGNS: Final = {
    findings.Severity.OK: "ok",
    findings.Severity.INFO: "note",
    findings.Severity.UNKNOWN: "?",
    findings.Severity.WARNING: "WARNING",
    findings.Severity.ERROR: "ERROR",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord doctor`."""
    parser.description = (
        "Check an installation, or what a node can do. Exit code: 0 nothing at or above the level "
        "of --fail-on; 3 warnings, or something that could not be checked; 4 errors; 1 the API "
        "server cannot be reached; 2 bad arguments."
    )
    parser.add_argument(
        "what",
        nargs="?",
        choices=("cluster", "installation", "node"),
        default="cluster",
        help="everything; whether the installed parts work, with few rights (helm test); a node",
    )
    parser.add_argument("name", nargs="?", default="", help="a node; without it, this host")
    clusters.add_arguments(parser)
    clusters.add_output(parser)
    clusters.add_installation(parser)
    parser.add_argument(
        "--probe-namespace",
        default="default",
        help="namespace in which trial pods are created (dry runs: nothing is kept)",
    )
    parser.add_argument(
        "--scheduler-config",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="KubeSchedulerConfiguration that is in no ConfigMap; may be given several times",
    )
    parser.add_argument(
        "--fail-on",
        choices=checks.LEVELS,
        default="error",
        help="least severity that makes the exit code other than 0",
    )
    parser.add_argument(
        "--bundle",
        type=Path,
        metavar="FILE",
        help="also write a support bundle (.tgz): findings, objects, events, logs; no secrets",
    )
    installed.add_arguments(parser)
    node_strategies.add_arguments(parser)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    if chosen.what == "node":
        return _run_node(chosen)
    if chosen.name:
        terminal.warn("koord doctor: only koord doctor node takes a name")
        return entry.BAD_SETTINGS
    for file in chosen.scheduler_config:
        if not file.is_file():
            terminal.warn(f"koord doctor: --scheduler-config {file}: there is no such file")
            return entry.BAD_SETTINGS
    try:
        found, collected = asyncio.run(_examine(chosen))
        if collected:
            support_bundle.save(chosen.bundle, collected)
    except (errors.KubeError, support_bundle.BundleError) as error:
        terminal.warn(f"koord doctor: {error}")
        return entry.FAILED
    if answers.is_document(chosen.output):
        answers.show(chosen.output, as_json(found))
    else:
        terminal.lines(lines(found))
    return checks.exit_code(found, chosen.fail_on)


def _run_node(chosen: argparse.Namespace) -> int:
    try:
        title, rows = asyncio.run(node_strategies.rows(chosen))
    except (errors.KubeError, node_strategies.NodeError) as error:
        terminal.warn(f"koord doctor node: {error}")
        return entry.FAILED
    node_strategies.show(title, rows, chosen.output)
    return node_strategies.exit_code(rows, chosen.fail_on)


async def _examine(chosen: argparse.Namespace) -> tuple[Sequence[findings.Finding], bytes]:
    clock = clocks.SystemClock()
    access = await clusters.connect(chosen)
    if chosen.what == "installation":
        return await _examine_installation(chosen, access, clock), b""
    options = survey.Options(
        chosen.koord_namespace, chosen.probe_namespace, tuple(chosen.scheduler_config)
    )
    async with clients.Client(
        access, clock=clock, user_agent="koord-doctor", limits=LIMITS
    ) as kube:
        found = await examine(kube, clock, options)
        if chosen.bundle is None:
            return found, b""
        _say(f"collecting {chosen.bundle}")
        return found, await support_bundle.collect(kube, clock, options, found)


async def _examine_installation(
    chosen: argparse.Namespace, access: accesses.Access, clock: clocks.Clock
) -> Sequence[findings.Finding]:
    agent = "koord-doctor"
    async with clients.Client(access, clock=clock, user_agent=agent, limits=LIMITS) as kube:
        return await installed.settled(kube, clock, installed.options(chosen), chosen.wait)


async def examine(
    kube: clients.Client,
    clock: clocks.Clock,
    options: survey.Options,
    say: survey.Say | None = None,
) -> Sequence[findings.Finding]:
    """Examine a cluster."""
    known = await survey.Surveyor(kube, clock, options, say or _say).take()
    return checks.examine(known)


def _say(text: str) -> None:
    if sys.stderr.isatty():
        terminal.warn(f"{text} …")


def as_json(found: Sequence[findings.Finding]) -> dict[str, object]:
    """Return the findings for programs."""
    return {
        "worst": str(checks.worst(found)),
        "findings": [dataclasses.asdict(finding) for finding in found],
    }


def lines(found: Sequence[findings.Finding]) -> Iterator[str]:
    """Yield the findings for people, the worst last, where the eye is."""
    for finding in sorted(found, key=lambda one: one.severity.rank):
        yield f"{SIGNS[finding.severity]:>7}  {finding.check}: {finding.sentence}"
        if finding.remedy and finding.severity is not findings.Severity.OK:
            yield f"{'':>7}  -> {finding.remedy}"
    yield ""
    yield checks.summary(found)
