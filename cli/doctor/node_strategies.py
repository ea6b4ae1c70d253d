"""`koord doctor node`: what each strategy can do on a host, and why no more."""

import argparse
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from agent import settings
from agent.host import files
from agent.model import capability_matrix, cgroup_layout
from agent.observe.cgroups import cgroup_files
from agent.observe.node import capability_facts
from api import names, resources
from api.wire import untrusted
from cli import clusters
from cli.doctor import node_devices, node_runtime
from cli.output import answers, terminal
from kube.client import client as clients
from process.configuration import explained_error
from process.runtime import clock as clocks

HOST: Final = settings.HostSettings()
SIGNS: Final = {
    capability_matrix.Verdict.WORKS: "works",
    capability_matrix.Verdict.SUBSTITUTE: "substitute",
    capability_matrix.Verdict.UNAVAILABLE: "UNAVAILABLE",
}
WARNING: Final = 3
WIDTH: Final = 100
_ALSO: Final = "  also "


class NodeError(explained_error.ExplainedError):
    """What a node can do cannot be told; the text says why and what to do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that only `koord doctor node` has."""
    here = parser.add_argument_group("koord doctor node without a name looks at this host")
    here.add_argument("--cgroup", type=Path, default=HOST.cgroup, help="root of the control groups")
    here.add_argument(
        "--kubelet-root", default="", help="the kubelet's --cgroup-root, where there are several"
    )
    here.add_argument("--proc", type=Path, default=HOST.proc, help="/proc of the host")
    here.add_argument(
        "--nri-socket",
        type=Path,
        default=settings.NriSettings().socket,
        help="the container runtime's socket for plug-ins",
    )
    here.add_argument("--sys", type=Path, default=HOST.sys, help="/sys of the host")


async def rows(chosen: argparse.Namespace) -> tuple[str, Sequence[capability_matrix.Row]]:
    """Return what is looked at and its table: a Node by its name, or this host."""
    if not chosen.name:
        arranged = _arranged(chosen)
        facts = capability_facts.facts(arranged, str(chosen.proc), str(chosen.sys))
        groups = "no group of pods"
        if arranged is not None:
            runtime = cgroup_files.runtime(arranged) or "a runtime that its groups do not name"
            groups = f"{arranged}, {runtime}"
        found = (
            *capability_matrix.matrix(facts),
            *node_runtime.rows(chosen.nri_socket),
            *node_devices.rows(str(chosen.sys)),
        )
        return f"this host: kernel {facts.kernel}, {groups}", found
    access = await clusters.connect(chosen)
    async with clients.Client(
        access, clock=clocks.SystemClock(), user_agent="koord-doctor"
    ) as kube:
        node = await kube.get(resources.NODES, chosen.name)
    text = (node["metadata"].get("annotations") or {}).get(names.ANNOTATION_STRATEGIES)
    if text is None:
        raise NodeError(
            f"node {chosen.name} has no annotation {names.ANNOTATION_STRATEGIES}: no agent has "
            "looked at it; see koord doctor cluster"
        )
    try:
        return f"node {chosen.name}, as its agent found it", read(text)
    except ValueError as error:
        raise NodeError(
            f"annotation {names.ANNOTATION_STRATEGIES} of node {chosen.name}: {error}; remove it, "
            "its agent writes it again within a minute"
        ) from error


def read(text: str) -> tuple[capability_matrix.Row, ...]:
    """Read the annotation of a node; a node's account may have written anything."""
    return capability_matrix.read(untrusted.checked(text, "its table"))


def _arranged(chosen: argparse.Namespace) -> cgroup_layout.Layout | None:
    try:
        return cgroup_files.detect(str(chosen.cgroup), chosen.kubelet_root)
    except files.ReadingError as error:
        raise NodeError(f"{error}, here by --kubelet-root") from error


def show(title: str, found: Sequence[capability_matrix.Row], output: str) -> None:
    """Print the table for people or for programs."""
    if answers.is_document(output):
        body = {"of": title, "strategies": [row.as_json() for row in found]}
        answers.show(output, body)
        return
    terminal.lines([title, "", *lines(found)])


def lines(found: Sequence[capability_matrix.Row]) -> Iterator[str]:
    """Yield the table for people; what is said of several strategies is said once."""
    groups: dict[tuple[capability_matrix.Verdict, str], list[str]] = {}
    for row in found:
        groups.setdefault((row.verdict, row.how), []).append(row.strategy)
    width = max((len(one[0]) for one in groups.values()), default=0)
    for (verdict, how), (first, *others) in groups.items():
        also = ", ".join(others)
        yield f"{first:<{width}}  {SIGNS[verdict]:<11}  {how}"
        yield from textwrap.wrap(
            also,
            WIDTH,
            initial_indent=_ALSO,
            subsequent_indent=" " * len(_ALSO),
            break_on_hyphens=False,
        )


def exit_code(found: Sequence[capability_matrix.Row], fail_on: str) -> int:
    """Return 3 where something is unavailable and warnings count, else 0."""
    lacks = any(row.verdict is capability_matrix.Verdict.UNAVAILABLE for row in found)
    return WARNING if lacks and fail_on == "warning" else 0
