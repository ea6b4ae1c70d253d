"""What the plug-in ElasticQuota costs: a filter call, and the whole life of a pod.

python -m benchmarks.scheduling.calls.quota [--nodes 1000] [--pods 20] [--quotas 200] [--rounds 7]
    [--calls 200]

Three extenders without an API server hold the same cluster: one without the plug-in, one with it
and no quota, one with so many quotas that share the cluster. Calls go bytes to bytes; a life is a
pod that the watch shows, filter, the assumption of a bind, its echo and the end. Measured by
processor time, in turns within one run.
"""

import argparse
import gc
import json
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from api import names
from api.koordinator import quota
from api.kubernetes import core
from benchmarks import figures
from extender import plugin_selection, registry, settings
from extender.explain import explanations
from extender.state import cluster_state, deltas, ledger, records
from extender.verbs import request_codec, verbs
from process.configuration import switches

_NOW = 1_782_907_200.0
_NAMES, _NAMESPACES = 420, 50
_OTHERS = ("BatchFit", "LoadAware")
_COLUMNS = ("cpu", "memory")


class Extender:
    """The state and the verbs of an extender, fed directly."""

    def __init__(self, enabled: Sequence[str], quotas: int) -> None:
        chosen = plugin_selection.select(settings.PluginSettings(enabled=tuple(enabled)))
        built = registry.build(chosen)
        trackers = registry.state_trackers(built.plugins.values())
        self.projector = records.Projector(None, (), registry.inputs(registry.every(built)))
        self.cluster = cluster_state.ClusterState(trackers, _COLUMNS)
        self.books = ledger.Ledger(self.cluster)
        self.books.unscheduled.wanted = quotas > 0
        self.quotas = quotas
        self.verbs = verbs.Verbs(
            self.cluster,
            registry.assemble(built),
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
            for place in range(pods):
                self.books.pod(None, self.record(_pod(f"p{number}-{place}", node=number)), _NOW)
        for number in range(self.quotas):
            found = quota.read_elastic_quota(_quota(number, nodes * 64 // self.quotas))
            delta = deltas.ObjectDelta(deltas.ELASTIC_QUOTA, found.identity, None, found)
            self.cluster.apply(delta)
        self.cluster.refresh()

    def record(self, raw: dict[str, Any]) -> records.PodRecord:
        """Read a pod as a watch does."""
        found = self.projector.pod(msgspec.convert(raw, core.Pod))
        assert found is not None
        return found

    def show(self, raw: dict[str, Any], body: bytes) -> None:
        """Let the watch show a pod that waits."""
        del body
        self.books.pod(None, self.record(raw), _NOW)

    def filter(self, raw: dict[str, Any], body: bytes) -> None:
        """Answer a call about a pod that the watch has shown."""
        del raw
        self.verbs.filter(body, _NOW)

    def live(self, raw: dict[str, Any], body: bytes) -> None:
        """Let a pod come, be bound and go."""
        waiting = self.record(raw)
        self.books.pod(None, waiting, _NOW)
        self.verbs.filter(body, _NOW)
        self.books.assume(waiting, "n0", _NOW, 1.0)
        bound = self.books.assumptions[waiting.uid].placed
        self.books.pod(waiting, bound, _NOW)
        self.books.pod(bound, None, _NOW)


def _pod(name: str, *, node: int | None = None, quotas: int = 0) -> dict[str, Any]:
    number = sum(map(ord, name))
    labels = {names.LABEL_QUOTA_NAME: f"q{number % quotas}"} if quotas else {}
    requests = {"cpu": "500m", "memory": "1Gi"}
    return {
        "metadata": {"name": name, "uid": name, "labels": labels}
        | {"namespace": f"ns{number % _NAMESPACES}"},
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


def _quota(number: int, cores: int) -> dict[str, Any]:
    spec = {"min": {"cpu": str(cores)}, "max": {"cpu": str(4 * cores)}}
    metadata = {"name": f"q{number}", "namespace": f"ns{number % _NAMESPACES}", "uid": str(number)}
    version = "scheduling.sigs.k8s.io/v1alpha1"
    return {"apiVersion": version, "kind": "ElasticQuota", "metadata": metadata, "spec": spec}


def _calls(count: int, nodes: int, quotas: int, seed: int) -> list[tuple[dict[str, Any], bytes]]:
    rng, everyone = random.Random(seed), [f"n{number}" for number in range(nodes)]
    pods = [_pod(f"w{number}", quotas=quotas) for number in range(count)]
    width = min(_NAMES, nodes)
    asked = ({"Pod": pod, "NodeNames": rng.sample(everyone, width)} for pod in pods)
    return [(pod, json.dumps(one).encode()) for pod, one in zip(pods, asked, strict=True)]


def _measured(
    call: Callable[[dict[str, Any], bytes], None], calls: list[tuple[dict[str, Any], bytes]]
) -> float:
    """Return the processor microseconds of one call."""
    gc.collect()
    started = time.thread_time()
    for raw, body in calls:
        call(raw, body)
    return (time.thread_time() - started) / len(calls) * 1e6


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20)
    parser.add_argument("--quotas", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=200)
    chosen = parser.parse_args(argv)
    print(f"# {figures.machine()}")
    made = {
        "without": Extender(_OTHERS, 0),
        "no quota": Extender(("ElasticQuota", *_OTHERS), 0),
        "quotas": Extender(("ElasticQuota", *_OTHERS), chosen.quotas),
    }
    taken: dict[tuple[str, str], list[float]] = {}
    for one in made.values():
        one.fill(chosen.nodes, chosen.pods)
    for turn in range(chosen.rounds):
        for name, one in made.items():
            calls = _calls(chosen.calls, chosen.nodes, one.quotas, turn)
            _measured(one.show, calls)
            for what, call in (("filter", one.filter), ("life", one.live)):
                taken.setdefault((what, name), []).append(_measured(call, calls))
    for (what, name), values in taken.items():
        if name != "without":
            count = f"{chosen.quotas} quotas" if name == "quotas" else "no quota"
            figures.show(
                figures.paired(
                    f"quota.{what}.{name.replace(' ', '-')}",
                    f"{what} of a pod with the plug-in ElasticQuota and {count}, processor time",
                    "us", values, taken[what, "without"], "without the plug-in",
                )
            )  # fmt: skip


if __name__ == "__main__":
    main()
