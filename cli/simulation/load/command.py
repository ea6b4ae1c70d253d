"""`koord simulate load`: hours of load replayed on a cluster or a snapshot."""

import argparse
import dataclasses
from pathlib import Path

import msgspec

from agent.assembly import feature_gates
from api import names, resources
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import durations, quantity
from cli import clusters, reading
from cli.output import progress, report_files
from cli.prometheus import client as prometheus
from cli.simulation import added_nodes, change, ending, object_files
from cli.simulation.load import history, node_agent, replay, results, sources
from cli.snapshot import format as formats
from cli.snapshot import projection, reader

_MOST_FILLING = 5000
_FILLER = "simulated-batch"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord simulate load`."""
    parser.description = (
        "Replay hours of load in virtual time: agents suppress, evict, predict and report, the "
        "manager lends, the extender places waiting pods, each by its own code. Shows how much "
        "more of the nodes is used, and what services pay for it in a stated model. Nothing is "
        "written to the cluster."
    )
    sources.add_arguments(parser)
    parser.add_argument(
        "--fill", default="", metavar="CORES,MEMORY",
        help="let as many batch pods of this size wait as all nodes could hold, as in 2,4Gi",
    )  # fmt: skip
    parser.add_argument(
        "-f", "--file", type=Path, action="append", default=[], metavar="FILE",
        help="changed settings or objects to replay with, as for `koord simulate settings`",
    )  # fmt: skip
    parser.add_argument("--nodes", type=int, default=0, metavar="NUMBER", help="so many more nodes")
    parser.add_argument("--like", default="", metavar="NODE", help="the node they are copies of")
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="NAME",
        help="also enable this plug-in of the extender",
    )  # fmt: skip
    parser.add_argument(
        "--agent-feature", action="append", default=[], metavar="NAME",
        help="a feature gate that the agents have on besides the defaults, such as BEMemoryEvict",
    )  # fmt: skip
    report_files.add_arguments(parser)
    reader.add_arguments(parser)
    clusters.add_output(parser)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    wrong = (change.ChangeError, prometheus.PrometheusError, history.HistoryError)
    return ending.ended(chosen, _replayed, results.document, results.lines, wrong)


def _replayed(chosen: argparse.Namespace) -> replay.Replay:
    report_files.check(chosen)
    sources.check(chosen)
    gates = _gates(chosen.agent_feature)
    snapshot = ending.read(chosen)
    load = sources.read(chosen, snapshot)
    options = replay.Options(load.hours, load.step_seconds, tuple(chosen.plugin), gates)
    _check_end(snapshot, options)
    if chosen.file:
        asked = [one for path in chosen.file for one in object_files.read(path)]
        snapshot = change.applied(snapshot, asked).snapshot
    ending.check_nodes(chosen)
    if chosen.nodes:
        snapshot = added_nodes.grown(snapshot, chosen.nodes, chosen.like).snapshot
    if chosen.fill:
        snapshot = filled(snapshot, chosen.fill)
    with progress.bar() as step:
        found = replay.replayed(snapshot, load.source, options, step)
    found = dataclasses.replace(found, notes=(*load.notes, *found.notes))
    report_files.write(chosen, results.report(found))
    return found


def _check_end(snapshot: formats.Snapshot, options: replay.Options) -> None:
    """Refuse hours up to a moment that cannot be written."""
    begin = durations.timestamp(snapshot.taken_at)
    if begin + (options.steps - 1) * options.step_seconds > durations.LAST_MOMENT:
        raise ending.ArgumentError(
            f"--hours {options.hours:g}: so many after {snapshot.taken_at} end beyond the year 9999"
        )


def _gates(more: list[str]) -> frozenset[str]:
    known = {gate.name for gate in feature_gates.GATES}
    for name in more:
        if name not in known:
            raise ending.ArgumentError(
                f"--agent-feature {name}: there is no such feature; there are "
                f"{', '.join(sorted(known))}"
            )
    return node_agent.GATES | frozenset(more)


def filled(snapshot: formats.Snapshot, size: str) -> formats.Snapshot:
    """Return a snapshot in which as many batch pods wait as all nodes could hold."""
    cores, _, memory = size.partition(",")
    try:
        cpu = quantity.amount(names.CPU, cores)
        bytes_ = quantity.amount(names.MEMORY, memory)
    except ValueError as error:
        raise ending.ArgumentError(f"--fill {size}: write cores and memory, as in 2,4Gi") from error
    if cpu <= 0 or bytes_ <= 0:
        raise ending.ArgumentError(f"--fill {size}: write cores and memory above zero")
    nodes = [
        reading.either(None, msgspec.convert, raw, core.Node)
        for raw in snapshot.of(resources.NODES)
    ]
    total = sum(
        quantity.amount(names.CPU, node.status.allocatable.get(names.CPU, 0))
        for node in nodes
        if node is not None
    )
    count = min(total // cpu, _MOST_FILLING)
    requests = {names.BATCH_CPU: str(cpu), names.BATCH_MEMORY: str(bytes_)}
    body = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    more = []
    for number in range(count):
        raw = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{_FILLER}-{number:04}",
                "namespace": _FILLER,
                "uid": f"{_FILLER}-{number}",
                "creationTimestamp": snapshot.taken_at,
                "labels": {names.LABEL_QOS: str(qos.QoS.BE)},
            },
            "spec": {**body, "priority": 5000},
            "status": {"phase": "Pending"},
        }
        more.append(projection.kept(resources.PODS, raw))
    pods = (*snapshot.of(resources.PODS), *more)
    objects = {**snapshot.objects, resources.PODS.review_name(): pods}
    return msgspec.structs.replace(snapshot, objects=objects)
