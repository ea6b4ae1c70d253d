"""What admission costs: by itself, and as part of creating pods through a real API server.

python -m benchmarks.admission [--rounds 5] [--seconds 3] [--rates 50,100,200,400]

(a) Pods are created at fixed rates in two namespaces by turns of half a second: one is reviewed,
the other is not. What we add is the difference within a round. (b) Reviews are sent straight to
the webhook over eight kept TLS connections: as fast as it answers, and at 1,000 a second.
"""

import argparse
import asyncio
import base64
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import uvloop

from api import names, resources
from benchmarks import feed, figures, keepalive, rig
from process import clock as clocks
from simulator import binaries, children

REVIEWED, PLAIN = "reviewed", "plain"
_CONNECTIONS = 8
_CREATORS = 32
_RATE = 1000
_BODY_BYTES = 7600
_LABEL = "koordinator.sh/enable-colocation"
_WARM_SECONDS = 1.0
_BLOCK_SECONDS = 0.5
_PATIENCE = 60.0
_PROFILES: tuple[dict[str, Any], ...] = (
    {"qosClass": "BE", "priorityClassName": "koord-batch", "koordinatorPriority": 1000},
    {"labels": {"team": "analytics"}, "annotations": {"example.com/note": "colocated"}},
    {"schedulerName": "koord-scheduler", "labelSuffixes": {"app": "-batch"}},
)


@dataclasses.dataclass(frozen=True, slots=True)
class Webhook:
    """The running webhook."""

    url: str
    pid: int
    ca: bytes


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
            "schedulerName": "nobody",
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
    hidden = {"control-plane": "bench"}
    for name, labels in ((names.NAMESPACE, {}), (REVIEWED, {}), (PLAIN, hidden)):
        metadata = {"name": name, "labels": labels}
        await made.call("POST", resources.NAMESPACES.path(), {"metadata": metadata})
    for name in (REVIEWED, PLAIN):
        with contextlib.suppress(RuntimeError):
            account = {"metadata": {"name": "default"}}
            await made.call("POST", resources.SERVICE_ACCOUNTS.path(name), account)
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


@contextlib.asynccontextmanager
async def _serving(made: rig.Rig) -> AsyncIterator[Webhook]:
    """Run the webhook as a process of its own, registered by address."""
    port, health = binaries.free_ports(2)
    login = made.plane.write_kubeconfig(made.workdir / "webhook-login.json")
    command = (
        *(sys.executable, "-m", "webhook", f"--kubeconfig={login}"),
        *("--server.host=127.0.0.1", f"--server.port={port}"),
        *("--server.announceSeconds=0", "--server.lingerSeconds=0"),
        *("--health.host=127.0.0.1", f"--health.port={health}", "--registration.url=self"),
        *('--certificates.names=["127.0.0.1"]', f"--certificates.folder={made.workdir / 'served'}"),
    )
    child = await children.start("webhook", command, made.workdir)
    try:

        async def registered() -> bool:
            path = resources.VALIDATING_WEBHOOKS.path(name="koord-webhook")
            with contextlib.suppress(RuntimeError):
                return bool(json.loads(await made.call("GET", path))["webhooks"])
            return False

        await children.ready(
            child, registered, clock=clocks.SystemClock(), timeout_seconds=_PATIENCE
        )
        path = resources.MUTATING_WEBHOOKS.path(name="koord-webhook")
        found = json.loads(await made.call("GET", path))
        ca = base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"])
        yield Webhook(f"https://127.0.0.1:{port}", child.pid, ca)
    finally:
        await child.stop()


async def _direct(webhook: Webhook, arguments: argparse.Namespace) -> None:
    """Ask the webhook itself, without an API server in between."""
    wanted = keepalive.request(f"{webhook.url}/mutate-pod", _review())
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


async def _through(made: rig.Rig, arguments: argparse.Namespace) -> None:
    """Create pods through the API server, with us and without us by turns."""
    body = json.dumps(_pod()).encode()
    login = (f"Authorization: Bearer {made.plane.token}",)
    query = "?dryRun=All" if arguments.dry_run else ""
    wanted = {
        where: keepalive.request(
            f"{made.plane.server}{resources.PODS.path(where)}{query}", body, login
        )
        for where in (PLAIN, REVIEWED)
    }
    print("\n(a) creating pods through the API server, milliseconds; medians of rounds")
    print(f"{'per s':>6}{'alone p50':>20}{'alone p99':>22}{'added p50':>22}{'added p99':>22}")
    async with keepalive.connected(made.plane.server, made.plane.ca, _CREATORS) as connections:
        await _check(connections[0], wanted)
        for rate in arguments.rates:
            rounds = []
            for turn in range(arguments.rounds):
                rounds.append(await _round(connections, wanted, rate, arguments.seconds, turn))
                await _empty(made, arguments)
            _rate_figures(rate, rounds)


async def _round(
    connections: Sequence[keepalive.Connection],
    wanted: dict[str, bytes],
    rate: int,
    seconds: float,
    turn: int,
) -> dict[str, list[float]]:
    """Create pods in short blocks by turns, so that whatever else runs here meets both alike."""
    found: dict[str, list[float]] = {PLAIN: [], REVIEWED: []}
    order = (PLAIN, REVIEWED) if turn % 2 else (REVIEWED, PLAIN)
    for _ in range(max(1, round(seconds / _BLOCK_SECONDS))):
        for where in order:
            found[where] += await keepalive.open_loop(
                connections, wanted[where], rate, _BLOCK_SECONDS
            )
    return found


def _rate_figures(rate: int, rounds: Sequence[dict[str, list[float]]]) -> None:
    shown = []
    for share in (0.5, 0.99):
        alone = [figures.percentile(one[PLAIN], share) for one in rounds]
        ours = [figures.percentile(one[REVIEWED], share) for one in rounds]
        added = [with_us - without for with_us, without in zip(ours, alone, strict=True)]
        shown.append((share, alone, ours, added))
    cells = [figures.spread(alone) for _, alone, _, _ in shown]
    cells += [figures.spread(added) for *_, added in shown]
    print(f"{rate:>6}{cells[0]:>20}" + "".join(f"{cell:>22}" for cell in cells[1:]), flush=True)
    for share, alone, ours, added in shown:
        name = f"F6.{rate}.p{share * 100:.0f}"
        what = f"pod create at {rate}/s through the API server, p{share * 100:.0f}"
        figures.show(
            figures.paired(name, what, "ms", ours, alone, "the same without us"),
            figures.plain(
                f"{name}_added", f"{what}, added by us", "ms", added,
                "<= 5" if (rate, share) == (200, 0.99) else "",
            ),
        )  # fmt: skip


async def _check(connection: keepalive.Connection, wanted: dict[str, bytes]) -> None:
    """Make sure that one namespace is reviewed and the other is not."""
    for where, expected in ((REVIEWED, True), (PLAIN, False)):
        async with asyncio.timeout(_PATIENCE):
            while (names.BATCH_CPU.encode() in await connection.ask(wanted[where])) != expected:  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.1)


async def _empty(made: rig.Rig, arguments: argparse.Namespace) -> None:
    if arguments.dry_run:
        return
    for where in (REVIEWED, PLAIN):
        path = resources.PODS.path(where)
        await made.call("DELETE", path, {"gracePeriodSeconds": 0})


async def _main(arguments: argparse.Namespace) -> None:
    print(figures.machine(), flush=True)
    async with rig.running(0) as made:
        await _furnish(made)
        async with _serving(made) as webhook:
            await _through(made, arguments)
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
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rates", type=_rates, default=[50, 100, 200, 400])
    parser.add_argument("--dry-run", action="store_true", help="let nothing be stored")
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
