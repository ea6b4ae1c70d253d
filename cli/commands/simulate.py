"""`koord simulate`: what a change would do, on a live cluster or a snapshot; nothing is written."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from api.wire import durations
from cli import clusters
from cli.gangs import answer as gang_answer
from cli.gangs import asked_gang
from cli.gangs import preview as gang_preview
from cli.placement import answer, asked_pod, preview
from cli.quota import changes, cluster, comparison, preemptor
from cli.rebalancing import simulation as rebalance
from cli.simulation import command as settings
from cli.simulation import ending, object_files
from cli.simulation.load import command as load
from cli.snapshot import reader


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord simulate`."""
    what = parser.add_subparsers(title="what", metavar="WHAT", required=True)
    _add_pod(what.add_parser("pod", help="where a pod fits, else which pods would leave for it"))
    _add_gang(what.add_parser("gang", help="whether a gang fits, where, else what would help"))
    rebalance.add_arguments(
        what.add_parser("rebalance", help="which pods the descheduler would move, where, and why")
    )
    settings.add_arguments(
        what.add_parser("settings", help="what other settings, objects or more nodes would do")
    )
    load.add_arguments(
        what.add_parser("load", help="hours of load: what is gained, and what services pay for it")
    )
    _add_quota(
        what.add_parser(
            "quota",
            help="what changed quotas would do: who starts, who is evicted, who keeps waiting",
        )
    )


def _add_quota(quota: argparse.ArgumentParser) -> None:
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


def _add_gang(gang: argparse.ArgumentParser) -> None:
    gang.description = (
        "Say whether a gang would get a place for all of its pods as things are, by the planner "
        "and the plug-ins of the extender and what kube-scheduler counts: on which nodes, else "
        "which member is the tightest, what refuses it, and what would make the gang fit. Nothing "
        "is written to the cluster."
    )
    gang.add_argument(
        "name", nargs="?", default="", help="a gang that waits: name, or namespace/name"
    )
    gang.add_argument(
        "-f",
        "--file",
        type=Path,
        action="append",
        default=[],
        help="pods, PodGroups, or workloads such as Job, JobSet, PyTorchJob, MPIJob, RayCluster "
        "and Volcano's Job, in this file",
    )
    gang.add_argument("-n", "--namespace", default="default", help="namespace of the gang")
    _add_extender(gang)
    gang.set_defaults(run=_run_gang)


def _add_extender(parser: argparse.ArgumentParser) -> None:
    """Declare what an extender on a snapshot is made of."""
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="NAME",
        help="also enable this plug-in of the extender, such as NodeNUMAResource",
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the state that was read")
    reader.add_arguments(parser, namespace_alias=False)
    clusters.add_output(parser)


def _run_gang(chosen: argparse.Namespace) -> int:
    wrong = (asked_gang.AskedGangError,)
    return ending.ended(chosen, _gang, gang_answer.document, gang_answer.lines, wrong)


def _gang(chosen: argparse.Namespace) -> gang_preview.Answer:
    if bool(chosen.name) == bool(chosen.file):
        raise ending.ArgumentError("name either a gang that waits, or a file with -f")
    documents = [document for path in chosen.file for document in object_files.read(path)]
    snapshot = ending.snapshot(chosen)
    if documents:
        asked = asked_gang.of_file(snapshot, documents, chosen.namespace)
    else:
        key = chosen.name if "/" in chosen.name else f"{chosen.namespace}/{chosen.name}"
        asked = asked_gang.named(snapshot, key)
    return gang_preview.preview(asked, tuple(chosen.plugin))


def _add_pod(pod: argparse.ArgumentParser) -> None:
    pod.description = (
        "Say where one pod would be placed as things are, by the plug-ins of the extender and what "
        "kube-scheduler counts; where it fits nowhere, which pods would leave for it and on which "
        "node; where nothing helps, why. Nothing is written to the cluster."
    )
    pod.add_argument(
        "name", nargs="?", default="", help="a pod that waits: name, or namespace/name"
    )
    pod.add_argument(
        "-f", "--file", type=Path, help="a Pod, or a workload with a pod template, in this file"
    )
    pod.add_argument("-n", "--namespace", default="default", help="namespace of the pod")
    _add_extender(pod)
    pod.set_defaults(run=_run_pod)


def _run_pod(chosen: argparse.Namespace) -> int:
    wrong = (asked_pod.AskedPodError,)
    return ending.ended(chosen, _pod, answer.document, answer.lines, wrong)


def _pod(chosen: argparse.Namespace) -> preview.Preview:
    body = _body(chosen)
    snapshot = ending.snapshot(chosen)
    if body is None:
        key = chosen.name if "/" in chosen.name else f"{chosen.namespace}/{chosen.name}"
        asked = asked_pod.named(snapshot, key)
    else:
        asked = asked_pod.added(snapshot, body, chosen.namespace)
    return preview.preview(asked, tuple(chosen.plugin))


def _body(chosen: argparse.Namespace) -> dict[str, Any] | None:
    """Return the pod of the file, None where a pod of the cluster is named."""
    if bool(chosen.name) == (chosen.file is not None):
        raise ending.ArgumentError("name either a pod that waits, or a file with -f")
    if chosen.file is None:
        return None
    documents = object_files.read(chosen.file)
    found = asked_pod.body(documents[0]) if len(documents) == 1 else None
    if found is None:
        raise ending.ArgumentError(
            f"{chosen.file} holds no single Pod or workload with a pod template: write one"
        )
    return found


def _run(chosen: argparse.Namespace) -> int:
    wrong = (changes.ChangeError,)
    return ending.ended(chosen, _quotas, comparison.document, comparison.lines, wrong)


def _quotas(chosen: argparse.Namespace) -> comparison.Comparison:
    return compared(cluster.build(ending.snapshot(chosen)), chosen)


def compared(found: cluster.Cluster, chosen: argparse.Namespace) -> comparison.Comparison:
    """Play a cluster with and without the changes that are asked for."""
    documents = [document for path in chosen.file for document in object_files.read(path)]
    changed = changes.apply(found.forest, found.quotas, chosen.flags, documents, chosen.delete)
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
        raise ending.ArgumentError(f"--duration {text}: there is no ElasticQuota {name}")
    return name, _seconds(f"--duration {name}", value)


def _seconds(flag: str, text: str) -> float:
    try:
        seconds = durations.seconds(text)
    except ValueError as error:
        raise ending.ArgumentError(f"{flag}: {error}") from error
    if seconds <= 0:
        raise ending.ArgumentError(f"{flag}: {text} is no time to come")
    return seconds
