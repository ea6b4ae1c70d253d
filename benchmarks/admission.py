"""What admission costs: by itself, and as part of creating pods through a real API server.

python -m benchmarks.admission [--rounds 5] [--seconds 6] [--rates 50,100,200,400]

(a) Pods are created at fixed rates in three namespaces by turns of half a second: one is reviewed
by us, one by a minimal webhook in Go that decides nothing, one by nobody. What is added is the
difference within a round; the minimal webhook shows how much of it any webhook adds on the same
cores. Processor time per create, and what the API server and we ourselves measured of each call,
say where it goes. (b) Reviews are sent straight to the webhook over eight kept TLS connections: as
fast as it answers, and at 1,000 a second.
"""

import argparse
import asyncio
import collections
import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
import uvloop

from api import names, resources
from benchmarks import feed, figures, keepalive, reviewers, rig
from benchmarks.reviewers import MINIMAL, PLAIN, REVIEWED
from process import collector

_WAYS = (PLAIN, MINIMAL, REVIEWED)
_CONNECTIONS = 8
_CREATORS = 32
_RATE = 1000
_BODY_BYTES = 7600
_LABEL = "koordinator.sh/enable-colocation"
_WARM_SECONDS = 1.0
_BLOCK_SECONDS = 0.5
_PATIENCE = 60.0
_BOUND_SECONDS = 0.005
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


@dataclasses.dataclass(slots=True)
class Seen:
    """What one round showed of each way."""

    taken: dict[str, list[float]] = dataclasses.field(
        default_factory=lambda: {way: [] for way in _WAYS}
    )
    """Milliseconds per create."""
    late: list[float] = dataclasses.field(default_factory=list)
    """How late creates were sent."""
    work: dict[str, collections.Counter[str]] = dataclasses.field(
        default_factory=lambda: {way: collections.Counter() for way in _WAYS}
    )
    """Seconds of processor time by program."""

    def percentiles(self, share: float) -> dict[str, float]:
        """Return one percentile of each way."""
        return {way: figures.percentile(taken, share) for way, taken in self.taken.items()}

    def per_create(self, way: str, program: str) -> float:
        """Return the milliseconds of processor time that a program used for one create."""
        return self.work[way][program] * 1e3 / len(self.taken[way])


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """Everything that takes part in creating pods."""

    made: rig.Rig
    connections: Sequence[keepalive.Connection]
    wanted: Mapping[str, bytes]
    pids: Mapping[str, int]
    webhook: reviewers.Webhook

    async def round(self, rate: int, seconds: float, turn: int) -> Seen:
        """Create pods in short blocks by turns, so that whatever else runs here meets all alike."""
        seen = Seen()
        for block in range(max(1, round(seconds / _BLOCK_SECONDS))):
            for place in range(len(_WAYS)):
                way = _WAYS[(place + block + turn) % len(_WAYS)]
                before = self._used()
                seen.taken[way] += await keepalive.open_loop(
                    self.connections, self.wanted[way], rate, _BLOCK_SECONDS, seen.late
                )
                after = self._used()
                seen.work[way].update({name: after[name] - before[name] for name in after})
        return seen

    def _used(self) -> dict[str, float]:
        return {name: figures.cpu_seconds(pid) for name, pid in self.pids.items()}

    async def empty(self) -> None:
        """Remove every pod."""
        for way in _WAYS:
            await self.made.call("DELETE", resources.PODS.path(way), {"gracePeriodSeconds": 0})

    async def durations(self) -> dict[str, collections.Counter[str]]:
        """Return the calls so far by upper bound: as the API server sees them, and as we do."""
        answered = (await self.made.call("GET", "/metrics")).decode()
        async with aiohttp.ClientSession() as session, session.get(self.webhook.metrics_url) as own:
            mine = await own.text()
        found: dict[str, collections.Counter[str]] = {}
        for pattern, text in ((_CALLED, answered), (_HANDLED, mine)):
            for match in pattern.finditer(text):
                counts = found.setdefault(match["name"], collections.Counter())
                counts[match["bound"]] += int(float(match["count"]))
        return found


_CALLED = re.compile(
    r'^apiserver_admission_webhook_admission_duration_seconds_bucket\{name="(?P<name>[^"]+)"'
    r'[^}]*le="(?P<bound>[^"]+)"\} (?P<count>\S+)$',
    re.MULTILINE,
)
_HANDLED = re.compile(
    r'^koord_webhook_review_seconds_bucket\{le="(?P<bound>[^"]+)",path="(?P<name>[^"]+)"\} '
    r"(?P<count>\S+)$",
    re.MULTILINE,
)


async def _through(
    made: rig.Rig,
    webhook: reviewers.Webhook,
    other: reviewers.Webhook,
    arguments: argparse.Namespace,
) -> None:
    """Create pods through the API server, with us, with the minimal webhook and without any."""
    body = json.dumps(_pod()).encode()
    login = (f"Authorization: Bearer {made.plane.token}",)
    query = "?dryRun=All" if arguments.dry_run else ""
    wanted = {
        way: keepalive.request(f"{made.plane.server}{resources.PODS.path(way)}{query}", body, login)
        for way in _WAYS
    }
    pids = {**made.plane.pids(), "webhook": webhook.pid, "minimal": other.pid, "load": os.getpid()}
    async with keepalive.connected(made.plane.server, made.plane.ca, _CREATORS) as connections:
        stage = Stage(made, connections, wanted, pids, webhook)
        await _check(connections[0], wanted)
        for rate in arguments.rates:
            # Connections between the API server and the webhooks are made here.
            await stage.round(rate, _WARM_SECONDS, 0)
            before, rounds = await stage.durations(), []
            for turn in range(arguments.rounds):
                rounds.append(await stage.round(rate, arguments.seconds, turn))
                if not arguments.dry_run:
                    await stage.empty()
            _latencies(rate, rounds)
            _work(rate, rounds)
            _calls(rate, before, await stage.durations())


def _latencies(rate: int, rounds: Sequence[Seen]) -> None:
    count = len(rounds[0].taken[PLAIN])
    print(f"\n(a) {rate} creates/s, {len(rounds)} rounds of {count} creates each way, milliseconds")
    late = [figures.percentile(seen.late, 0.99) for seen in rounds]
    print(f"sent late, p99          {figures.spread(late)}")
    for share in (0.5, 0.99):
        name = f"F6.{rate}.p{share * 100:.0f}"
        what = f"pod create at {rate}/s through the API server, p{share * 100:.0f}"
        found = [seen.percentiles(share) for seen in rounds]
        alone = [each[PLAIN] for each in found]
        ours = [each[REVIEWED] for each in found]
        added = [each[REVIEWED] - each[PLAIN] for each in found]
        minimal = [each[MINIMAL] - each[PLAIN] for each in found]
        over = [each[REVIEWED] - each[MINIMAL] for each in found]
        print(f"p{share * 100:.0f} alone               {figures.spread(alone)}")
        print(f"p{share * 100:.0f} added by us         {figures.spread(added)}")
        print(f"p{share * 100:.0f} added by minimal    {figures.spread(minimal)}")
        goal = "<= 5" if (rate, share) == (200, 0.99) else ""
        figures.show(
            figures.paired(name, what, "ms", ours, alone, "the same without us"),
            figures.plain(f"{name}_added", f"{what}, added by us", "ms", added, goal),
            figures.plain(
                f"{name}_minimal", f"{what}, added by a minimal one in Go", "ms", minimal
            ),
            figures.plain(f"{name}_over", f"{what}, ours less the minimal one", "ms", over),
        )
    figures.show(figures.plain(f"F6.{rate}.late", "creates sent late, p99", "ms", late))


def _work(rate: int, rounds: Sequence[Seen]) -> None:
    """Show whose processor time a create costs, which the load of the machine changes least."""
    print("processor time per create, ms")
    for program in sorted(rounds[0].work[PLAIN]):
        shown = {way: [seen.per_create(way, program) for seen in rounds] for way in _WAYS}
        cells = "".join(f"{way} {figures.spread(shown[way])}   " for way in _WAYS)
        print(f"  {program:<24}{cells}")
    for name, way in (("", REVIEWED), ("_minimal", MINIMAL)):
        added = [
            sum(
                seen.per_create(way, program) - seen.per_create(PLAIN, program)
                for program in seen.work[way]
            )
            for seen in rounds
        ]
        what = f"processor time that a webhook adds to a create, all programs, {way}"
        figures.show(figures.plain(f"F6.{rate}.cpu{name}", what, "ms", added))


def _calls(
    rate: int,
    before: Mapping[str, collections.Counter[str]],
    after: Mapping[str, collections.Counter[str]],
) -> None:
    """Show how many calls were within a bound, as the API server and as we ourselves saw it."""
    for name, counts in sorted(after.items()):
        new = counts - before.get(name, collections.Counter())
        every = new["+Inf"]
        if not every:
            continue
        bound = min((b for b in new if float(b) >= _BOUND_SECONDS), key=float)
        share = new[bound] / every
        print(f"{name:<36}{share:8.2%} of {every} calls within {float(bound) * 1e3:g} ms")
        figures.show(
            figures.plain(
                f"F6.{rate}.within.{name.strip('/')}",
                f"calls within {float(bound) * 1e3:g} ms: {name}", "1", [share],
            )
        )  # fmt: skip


async def _check(connection: keepalive.Connection, wanted: Mapping[str, bytes]) -> None:
    """Make sure that every namespace is reviewed by whom it should be, and by nobody else."""
    ours, minimal = names.BATCH_CPU.encode(), b"bench.example.com/seen"
    for way, expected in ((REVIEWED, {ours}), (MINIMAL, {minimal}), (PLAIN, set())):
        async with asyncio.timeout(_PATIENCE):
            while True:
                answer = await connection.ask(wanted[way])
                if {mark for mark in (ours, minimal) if mark in answer} == expected:
                    break
                await asyncio.sleep(0.1)


async def _main(arguments: argparse.Namespace) -> None:
    print(figures.machine(), flush=True)
    # A collection in the load generator would count as time of whoever it asks.
    async with collector.running(), rig.running(0) as made:
        await _furnish(made)
        async with reviewers.ours(made) as webhook:
            async with reviewers.minimal(made) as other:
                await _through(made, webhook, other, arguments)
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
