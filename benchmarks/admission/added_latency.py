"""What admission costs: by itself, and as part of creating pods through a real API server.

python -m benchmarks.admission.added_latency [--rounds 5] [--seconds 6] [--rates 50,100,200,400]

(a) Pods are created at fixed rates in three namespaces by turns of half a second: one is reviewed
by us, one by a minimal webhook in Go that decides nothing, one by none. What is added is the
difference within a round; the minimal webhook shows how much of it any webhook adds on the same
cores. Processor time per create, and what the API server and we ourselves measured of each call,
say where it goes. (b) Reviews are sent straight to the webhook over eight kept TLS connections: as
fast as it answers, and at 1,000 a second.
"""

import argparse
import json
import os
from collections.abc import Sequence
from typing import Any

import uvloop

from api import names, resources
from benchmarks import figures
from benchmarks.admission import creates, keepalive, pauses, reviewers
from benchmarks.admission.reviewers import REVIEWED
from benchmarks.plane import feed, rig
from process.runtime import collector

_CONNECTIONS = 8
_RATE = 1000
_BODY_BYTES = 7600
_LABEL = "koordinator.sh/enable-colocation"
_WARM_SECONDS = 1.0
_PROFILES: tuple[dict[str, Any], ...] = (
    {"qosClass": "BE", "priorityClassName": "koord-batch", "koordinatorPriority": 1000},
    {"labels": {"team": "analytics"}, "annotations": {"example.com/note": "colocated"}},
    {"schedulerName": "koord-scheduler", "labelSuffixes": {"app": "-batch"}},
)


def _pod() -> dict[str, Any]:
    """Return a pod of 7.6 KB that all profiles select."""
    body: dict[str, Any] = json.loads(feed.pod_text(1, "", moment=""))
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "workload-",
            "labels": {**body["metadata"]["labels"], _LABEL: "true", "app": "web"},
            "annotations": {"example.com/padding": ""},
        },
        "spec": {
            "schedulerName": "none",
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/team/app:v1",
                    "resources": {
                        "requests": {"cpu": "500m", "memory": "1Gi"},
                        "limits": {"cpu": "1", "memory": "1Gi"},
                    },
                }
            ],
        },
    }
    made["metadata"]["labels"].pop(names.LABEL_PRIORITY_CLASS, None)
    missing = _BODY_BYTES - len(json.dumps(made))
    made["metadata"]["annotations"]["example.com/padding"] = "x" * missing
    return made


def _review() -> bytes:
    resource = {"group": "", "version": "v1", "resource": "pods"}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": resource,
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "requestResource": resource,
        "namespace": REVIEWED,
        "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "object": _pod(),
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(review, separators=(",", ":")).encode()


async def _furnish(made: rig.Rig) -> None:
    """Create the namespaces, the priority class and the profiles."""
    await reviewers.furnish(made)
    body: dict[str, Any] = {"metadata": {"name": names.PRIORITY_CLASS_BATCH}, "value": 5000}
    await made.call("POST", resources.PRIORITY_CLASSES.path(), body)
    for number, spec in enumerate(_PROFILES):
        body = {
            "apiVersion": resources.COLOCATION_PROFILES.api_version,
            "kind": resources.COLOCATION_PROFILES.kind,
            "metadata": {"name": f"profile-{number}"},
            "spec": {"selector": {"matchLabels": {_LABEL: "true"}}, **spec},
        }
        await made.call("POST", resources.COLOCATION_PROFILES.path(), body)


async def _direct(webhook: reviewers.Webhook, arguments: argparse.Namespace) -> None:
    """Ask the webhook itself, without an API server in between."""
    wanted = keepalive.request(f"{webhook.url}/mutate-pod?timeout=2s", _review())
    fast: list[tuple[float, float, float, float]] = []
    steady: list[tuple[float, float]] = []
    async with keepalive.connected(webhook.url, webhook.ca, _CONNECTIONS) as connections:
        answer = await connections[0].ask(wanted)
        assert b"JSONPatch" in answer, answer
        await keepalive.closed_loop(connections, wanted, _WARM_SECONDS)
        for _ in range(arguments.rounds):
            before = figures.cpu_seconds(webhook.pid)
            taken = await keepalive.closed_loop(connections, wanted, arguments.seconds)
            used = figures.cpu_seconds(webhook.pid) - before
            halves = [figures.percentile(taken, share) for share in (0.5, 0.99)]
            fast.append((len(taken) / arguments.seconds, len(taken) / used, *halves))
            taken = await keepalive.open_loop(connections, wanted, _RATE, arguments.seconds)
            steady.append((figures.percentile(taken, 0.5), figures.percentile(taken, 0.99)))
    columns = [list(column) for column in zip(*fast, strict=True)]
    at_rate = [list(column) for column in zip(*steady, strict=True)]
    print(
        f"\n(b) {len(wanted)} bytes per review, {_CONNECTIONS} kept TLS connections; "
        "medians of rounds, spread in []"
    )
    print(f"answers/s          {figures.spread(columns[0], 0)}")
    print(f"answers/s of CPU   {figures.spread(columns[1], 0)}")
    print(f"p50, p99 ms        {figures.spread(columns[2])}  {figures.spread(columns[3])}")
    print(
        f"at {_RATE}/s p50, p99 {figures.spread(at_rate[0])}  {figures.spread(at_rate[1])}",
        flush=True,
    )
    figures.show(
        figures.plain("F6.rps", "reviews answered, closed loop", "1/s", columns[0], ">= 3000"),
        figures.plain(
            "F6.rps_cpu", "reviews answered per second of one core", "1/s", columns[1], ">= 3000"
        ),
        figures.plain("F6.p50", "review over TLS, closed loop", "ms", columns[2]),
        figures.plain("F6.p99", "review over TLS, closed loop", "ms", columns[3]),
        figures.plain("F6.p50_1000", "review at 1,000/s", "ms", at_rate[0]),
        figures.plain("F6.p99_1000", "review at 1,000/s", "ms", at_rate[1], "<= 5"),
    )


async def _main(arguments: argparse.Namespace) -> None:
    print(figures.machine(), flush=True)
    os.environ.update(pauses.SWITCH)
    # A collection in the load generator would count as time of the webhook that it asks.
    async with collector.running(), rig.running(rig.even(0)) as made:
        await _furnish(made)
        async with reviewers.ours(made) as webhook:
            async with reviewers.minimal(made) as other:
                body = json.dumps(_pod()).encode()
                await creates.through(made, webhook, other, body, arguments)
            # Each on a core of its own: what is measured is one core.
            cores = sorted(os.sched_getaffinity(0))
            if len(cores) > 1:
                os.sched_setaffinity(webhook.pid, cores[:1])
                os.sched_setaffinity(0, cores[1:])
            await _direct(webhook, arguments)
            print(f"resident {figures.resident(webhook.pid):.0f} MiB")


def _rates(text: str) -> list[int]:
    return [int(rate) for rate in text.split(",")]


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rates", type=_rates, default=[50, 100, 200, 400])
    parser.add_argument("--dry-run", action="store_true", help="let nothing be stored")
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
