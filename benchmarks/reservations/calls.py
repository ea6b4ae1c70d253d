"""What Reservations cost: a filter call about many nodes, and the whole life of a pod.

python -m benchmarks.reservations.calls [--nodes 5000] [--pods 20000] [--reservations 2000]
    [--owners 20] [--rounds 7] [--calls 200]

Three extenders without an API server hold the same cluster: one without the plug-in, one with it
and no Reservation, one with so many, each for the pods of one of some workloads. Every second pod
is an owner, and pods are of many sizes. Between two calls a pod is bound where it scores best, so
that nothing is answered from what the last call found. Calls go bytes to bytes, measured by
processor time, in turns within one run.
"""

import argparse
import gc
import json
import random
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from api.koordinator import scheduling
from api.kubernetes import core
from benchmarks import figures
from extender import parts, plugin_selection, registry, settings
from extender.explain import explanations
from extender.framework import pipeline, views
from extender.state import cluster_state, ledger, records
from extender.state.reservations import reservation_claims
from extender.verbs import request_codec, verbs
from process.configuration import switches

_NOW = 1_782_907_200.0
_OTHERS = ("ElasticQuota", "BatchFit", "LoadAware", "DeviceShare")
_GOAL_MS = 3


class Extender:
    """The state and the verbs of an extender, fed directly."""

    def __init__(self, enabled: Sequence[str], reservations: int, owners: int) -> None:
        chosen = plugin_selection.select(settings.PluginSettings(enabled=tuple(enabled)))
        built = registry.build(chosen)
        every = registry.every(built)
        self.projector = records.Projector(None, registry.codecs(every), registry.inputs(every))
        self.cluster = cluster_state.ClusterState(
            registry.state_trackers(built.plugins.values()), parts.COUNTED
        )
        self.books = ledger.Ledger(self.cluster)
        self.reservations, self.owners = reservations, owners
        self.line = registry.assemble(built)
        self.verbs = verbs.Verbs(
            self.cluster,
            self.line,
            self.projector,
            switches.Switches("extender"),
            explanations.Explanations(),
            lambda _: None,
            request_codec.Reader(self.projector),
        )

    def fill(self, nodes: int, pods: int) -> None:
        """Let watches tell of a cluster."""
        for number in range(nodes):
            self.books.node(None, self.projector.node(msgspec.convert(_node(number), core.Node)))
        for number in range(pods):
            self.books.pod(None, self.record(_pod(f"p{number}", node=number % nodes)), _NOW)
        for number in range(self.reservations):
            raw = _reservation(number, number * 7 % nodes, self.owners)
            claim = reservation_claims.claim(scheduling.read_reservation(raw), self.projector)
            self.books.reservations.watched(None, claim)
        self.cluster.refresh()

    def record(self, raw: dict[str, Any]) -> records.PodRecord:
        """Read a pod as a watch does."""
        found = self.projector.pod(msgspec.convert(raw, core.Pod))
        assert found is not None
        return found

    def live(self, raw: dict[str, Any], body: bytes) -> tuple[float, float]:
        """Let a pod come, be bound and go; return the milliseconds of filter and of its life."""
        started = time.thread_time()
        waiting = self.record(raw)
        self.books.pod(None, waiting, _NOW)
        asked_at = time.thread_time()
        answer = self.verbs.filter(body, _NOW)
        answered_at = time.thread_time()
        names = json.loads(answer)["NodeNames"]
        view = self.cluster.view()
        cycle = self.line.cycle(views.PodInfo.of(waiting), view)
        rows = np.array([view.rows[name] for name in names])
        judged_at = time.thread_time()
        best = int(self.line.score(cycle, view, rows, _NOW).argmax())
        row = int(rows[best])
        grants = self.line.reserve(cycle, view, row)
        assert not isinstance(grants, pipeline.Refusal)
        given = {name: one.allocation for name, one in grants.items() if one.allocation}
        self.books.assume(waiting, names[best], _NOW, 1.0, given)
        bound = self.books.assumptions[waiting.uid].placed
        self.books.pod(waiting, bound, _NOW)
        self.books.pod(bound, None, _NOW)
        self.cluster.refresh()
        ended_at = time.thread_time()
        life = ended_at - started - (judged_at - answered_at)
        return (answered_at - asked_at) * 1e3, life * 1e3


def _pod(
    name: str, *, node: int | None = None, app: str = "plain", cpu: int = 500
) -> dict[str, Any]:
    requests = {"cpu": f"{cpu}m", "memory": f"{2 * cpu}Mi"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {"app": app, "tier": "backend", "team": "a"},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "nodeName": "" if node is None else f"n{node}",
            "containers": [{"name": "c", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Pending" if node is None else "Running"},
    }


def _node(number: int) -> dict[str, Any]:
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    metadata = {"name": f"n{number}", "uid": f"n{number}"}
    return {"metadata": metadata, "status": {"allocatable": allocatable}}


def _reservation(number: int, node: int, owners: int) -> dict[str, Any]:
    requests = {"cpu": "4", "memory": "8Gi"}
    return {
        "metadata": {"name": f"r{number}", "uid": f"r{number}"},
        "spec": {
            "template": {
                "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}
            },
            "owners": [{"labelSelector": {"matchLabels": {"app": f"app-{number % owners}"}}}],
            "allocateOnce": False,
        },
        "status": {"phase": "Available", "nodeName": f"n{node}", "allocatable": requests},
    }


def _calls(chosen: argparse.Namespace, seed: int) -> list[tuple[dict[str, Any], bytes]]:
    rng, everyone = random.Random(seed), [f"n{number}" for number in range(chosen.nodes)]
    pods = [
        _pod(
            f"w{seed}-{n}",
            app=f"app-{n % chosen.owners}" if n % 2 else f"other-{n % 7}",
            cpu=rng.randrange(50, 1500),
        )
        for n in range(chosen.calls)
    ]
    asked = ({"Pod": pod, "NodeNames": rng.sample(everyone, chosen.nodes)} for pod in pods)
    return [(pod, json.dumps(one).encode()) for pod, one in zip(pods, asked, strict=True)]


def _measured(
    one: Extender, calls: list[tuple[dict[str, Any], bytes]]
) -> tuple[list[float], list[float]]:
    """Return the milliseconds of filter calls and of lives."""
    gc.collect()
    found = [one.live(raw, body) for raw, body in calls]
    return [filter_ms for filter_ms, _ in found], [life_ms for _, life_ms in found]


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--reservations", type=int, default=2000)
    parser.add_argument("--owners", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=200)
    chosen = parser.parse_args(argv)
    print(f"# {figures.machine()}")
    enabled = ("Reservation", *_OTHERS)
    made = {
        "without": Extender(_OTHERS, 0, chosen.owners),
        "none": Extender(enabled, 0, chosen.owners),
        "reservations": Extender(enabled, chosen.reservations, chosen.owners),
    }
    for one in made.values():
        one.fill(chosen.nodes, chosen.pods)
    p50: dict[str, list[float]] = {name: [] for name in made}
    p99: dict[str, list[float]] = {name: [] for name in made}
    lives: dict[str, list[float]] = {name: [] for name in made}
    for turn in range(chosen.rounds):
        for name, one in made.items():
            filters, whole = _measured(one, _calls(chosen, turn))
            p50[name].append(figures.percentile(filters, 0.5))
            p99[name].append(figures.percentile(filters, 0.99))
            lives[name].append(sum(whole) / len(whole))
    _show(chosen, p50, p99, lives)


def _show(
    chosen: argparse.Namespace,
    p50: dict[str, list[float]],
    p99: dict[str, list[float]],
    lives: dict[str, list[float]],
) -> None:
    for name, count in (("none", "no Reservation"), ("reservations", f"{chosen.reservations}")):
        what = f"{count} Reservations" if name == "reservations" else count
        against = "without the plug-in"
        figures.show(
            figures.paired(
                f"reservations.filter.{name}",
                f"server side of a filter call, {chosen.nodes} names, {what}, p50 of cpu",
                "ms", p50[name], p50["without"], against,
            ),
            figures.plain(
                f"reservations.filter.{name}.p99",
                f"the same, p99 of cpu, {chosen.pods} pods", "ms", p99[name], f"goal {_GOAL_MS}",
            ),
            figures.paired(
                f"reservations.life.{name}",
                f"all of the extender's own work for a pod, {what}, processor time",
                "ms", lives[name], lives["without"], against,
            ),
        )  # fmt: skip


if __name__ == "__main__":
    main()
