"""`koord simulate settings`: what changed settings, objects or more nodes would do."""

import argparse
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cli import clusters
from cli.output import progress, report_files
from cli.previews import class_changes
from cli.simulation import (
    added_nodes,
    change,
    comparison,
    ending,
    lent,
    object_files,
    placing,
    settings_report,
)
from cli.snapshot import format as formats
from cli.snapshot import reader
from domain import wording

_NOT_PLAYED = (
    "nobody is evicted and no gate opens here: `koord simulate pod` shows preemption, `koord "
    "simulate quota` the pods that wait for quota"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord simulate settings`."""
    parser.description = (
        "Say what changed settings, quotas, profiles or more nodes would do: what every node would "
        "lend to batch and mid pods, by the manager's own calculation, and which waiting pods "
        "would then get a place and where, by the plug-ins of the extender and the filters and "
        "scores of kube-scheduler. Nothing is written to the cluster."
    )
    parser.add_argument(
        "-f", "--file", type=Path, action="append", default=[], metavar="FILE",
        help="ConfigMaps of settings, ElasticQuotas, ClusterColocationProfiles and other objects "
        "as they would be applied",
    )  # fmt: skip
    parser.add_argument(
        "--nodes", type=int, default=0, metavar="NUMBER", help="so many more nodes, see --like"
    )
    parser.add_argument(
        "--like", default="", metavar="NODE", help="the node that added nodes are copies of"
    )
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="NAME",
        help="also enable this plug-in of the extender, such as NodeNUMAResource",
    )  # fmt: skip
    report_files.add_arguments(parser)
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the state that was read")
    reader.add_arguments(parser)
    clusters.add_output(parser)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    def lines(found: comparison.Comparison) -> Iterable[str]:
        return comparison.lines(found, wide=chosen.output == "wide")

    return ending.ended(chosen, _asked, comparison.document, lines, (change.ChangeError,))


def _asked(chosen: argparse.Namespace) -> comparison.Comparison:
    asked = [one for path in chosen.file for one in object_files.read(path)]
    if not asked and not chosen.nodes:
        raise change.ChangeError("nothing is changed: name a file with -f, or --nodes")
    ending.check_nodes(chosen)
    report_files.check(chosen)
    snapshot = ending.snapshot(chosen)
    with progress.bar() as step:
        added = (chosen.nodes, chosen.like)
        found = compared(snapshot, asked, added, tuple(chosen.plugin), step)
    report_files.write(chosen, settings_report.report(found))
    return found


def compared(
    snapshot: formats.Snapshot,
    asked: Sequence[Mapping[str, Any]],
    nodes: tuple[int, str] = (0, ""),
    plugins: tuple[str, ...] = (),
    step: progress.Step = progress.silent,
) -> comparison.Comparison:
    """Compare a cluster with what a change makes of it; `nodes`: how many more, and like which."""
    changed = change.applied(snapshot, asked)
    count, like = nodes
    if count:
        grown = added_nodes.grown(changed.snapshot, count, like)
        changed = dataclasses.replace(
            changed, snapshot=grown.snapshot, said=(*changed.said, *grown.said)
        )
    without = _side(snapshot, plugins, step)
    after = _side(changed.snapshot, plugins, step)
    homes = comparison.class_cluster(changed.snapshot)
    classes = tuple(class_changes.compared(homes, profile) for profile in changed.profiles)
    notes = (*after.lent.problems, *after.placed.notes, *_told(after))
    return comparison.Comparison(changed.said, without, after, classes, tuple(dict.fromkeys(notes)))


def _side(
    snapshot: formats.Snapshot, plugins: tuple[str, ...], step: progress.Step
) -> comparison.Side:
    """Calculate the lent resources, then place pods on what the nodes offer because of them."""
    step("calculating what nodes lend", 0, 1)
    given = lent.calculated(snapshot)
    offered = lent.published(snapshot, given)
    placed = placing.played(offered, plugins, step)
    return comparison.side(offered, placed, given)


def _told(after: comparison.Side) -> Sequence[str]:
    found = []
    doubts: dict[str, int] = {}
    for one in after.placed.places:
        if one.doubt:
            doubts[one.doubt] = doubts.get(one.doubt, 0) + 1
    for doubt, count in sorted(doubts.items()):
        pods = wording.form(count, "another node for 1 pod", f"other nodes for {count} pods")
        found.append(f"kube-scheduler may choose {pods}: {doubt}")
    if after.placed.gated:
        pods = wording.count(len(after.placed.gated), "pod waits", "pods wait")
        found.append(f"{pods} behind scheduling gates")
    if after.placed.waits or after.placed.gated:
        found.append(_NOT_PLAYED)
    return found
