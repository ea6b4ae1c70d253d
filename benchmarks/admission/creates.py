"""Creating pods at fixed rates through a real API server, reviewed by us, by another, by none.

Creates that met a garbage collection of the API server are told apart: on few cores these are the
slow ones, with any webhook.
"""

import argparse
import asyncio
import collections
import dataclasses
import math
import os
import re
from collections.abc import Mapping, Sequence

import aiohttp

from api import names, resources
from benchmarks import figures
from benchmarks.admission import keepalive, pauses, reviewers
from benchmarks.admission.reviewers import MINIMAL, PLAIN, REVIEWED
from benchmarks.plane import rig

_WAYS = (PLAIN, MINIMAL, REVIEWED)
_CREATORS = 32
_WARM_SECONDS = 1.0
_BLOCK_SECONDS = 0.5
_PATIENCE = 60.0
_BOUND_SECONDS = 0.005


@dataclasses.dataclass(slots=True)
class Seen:
    """What one round showed of each way."""

    calls: dict[str, list[keepalive.Call]] = dataclasses.field(
        default_factory=lambda: {way: [] for way in _WAYS}
    )
    work: dict[str, collections.Counter[str]] = dataclasses.field(
        default_factory=lambda: {way: collections.Counter() for way in _WAYS}
    )
    """Seconds of processor time by program."""

    def percentile(self, way: str, share: float, calm: Sequence[pauses.Span] = ()) -> float:
        """Return a percentile of the milliseconds of the calls outside of some spans of time."""
        taken = [
            call.milliseconds
            for call in self.calls[way]
            if not pauses.meets(pauses.Span(call.due, call.done), calm)
        ]
        # A round all of whose calls met one tells nothing.
        return figures.percentile(taken, share) if taken else math.nan

    def late(self) -> float:
        """Return the p99 of how many milliseconds late creates were sent."""
        each = [(call.sent - call.due) * 1e3 for calls in self.calls.values() for call in calls]
        return figures.percentile(each, 0.99)

    def met(self, way: str, spans: Sequence[pauses.Span]) -> float:
        """Return the share of calls that met one of some spans of time."""
        calls = self.calls[way]
        met = sum(pauses.meets(pauses.Span(call.due, call.done), spans) for call in calls)
        return met / len(calls)

    def per_create(self, way: str, program: str) -> float:
        """Return the milliseconds of processor time that a program used for one create."""
        return self.work[way][program] * 1e3 / len(self.calls[way])


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
                await keepalive.open_loop(
                    self.connections, self.wanted[way], rate, _BLOCK_SECONDS, seen.calls[way]
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

    def cycles(self) -> list[pauses.Span]:
        """Return when the garbage collector of the API server ran."""
        log = self.made.workdir / "plane" / "kube-apiserver.log"
        text = log.read_text(encoding="utf-8", errors="replace")
        return pauses.cycles(text, pauses.started(self.pids["kube-apiserver"]))

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


async def through(
    made: rig.Rig,
    webhook: reviewers.Webhook,
    other: reviewers.Webhook,
    body: bytes,
    arguments: argparse.Namespace,
) -> None:
    """Create pods through the API server, with us, with the minimal webhook and without any."""
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
            _calm(rate, rounds, stage.cycles())
            _work(rate, rounds)
            _calls(rate, before, await stage.durations())


def _latencies(rate: int, rounds: Sequence[Seen]) -> None:
    count = len(rounds[0].calls[PLAIN])
    print(f"\n(a) {rate} creates/s, {len(rounds)} rounds of {count} creates each way, milliseconds")
    late = [seen.late() for seen in rounds]
    print(f"sent late, p99          {figures.spread(late)}")
    for share in (0.5, 0.99):
        _added(f"F6.{rate}", f"pod create at {rate}/s", share, rounds, ())
    figures.show(figures.plain(f"F6.{rate}.late", "creates sent late, p99", "ms", late))


def _calm(rate: int, rounds: Sequence[Seen], cycles: Sequence[pauses.Span]) -> None:
    """Show the same without the creates that met a garbage collection of the API server."""
    for way in _WAYS:
        met = [seen.met(way, cycles) for seen in rounds]
        print(f"met a collection of the API server, {way:<10}{figures.spread(met)}")
        what = f"creates that met a garbage collection of the API server, {way}"
        figures.show(figures.plain(f"F6.{rate}.met.{way}", what, "1", met))
    what = f"pod create at {rate}/s that met no garbage collection of the API server"
    _added(f"F6.{rate}.calm", what, 0.99, rounds, cycles)


def _added(
    name: str, what: str, share: float, rounds: Sequence[Seen], calm: Sequence[pauses.Span]
) -> None:
    """Show a percentile alone and what is added to it."""
    name, what = f"{name}.p{share * 100:.0f}", f"{what}, p{share * 100:.0f}"
    found = [{way: seen.percentile(way, share, calm) for way in _WAYS} for seen in rounds]
    found = [each for each in found if not any(map(math.isnan, each.values()))]
    if not found:
        print(f"{name}: every create met a collection")
        return
    alone, ours = [each[PLAIN] for each in found], [each[REVIEWED] for each in found]
    added = [each[REVIEWED] - each[PLAIN] for each in found]
    minimal = [each[MINIMAL] - each[PLAIN] for each in found]
    over = [each[REVIEWED] - each[MINIMAL] for each in found]
    print(
        f"{name:<24}alone {figures.spread(alone)}   added by us {figures.spread(added)}"
        f"   by the minimal one {figures.spread(minimal)}"
    )
    goal = "<= 5" if name == "F6.200.p99" else ""
    figures.show(
        figures.paired(name, what, "ms", ours, alone, "the same without us"),
        figures.plain(f"{name}_added", f"{what}, added by us", "ms", added, goal),
        figures.plain(f"{name}_minimal", f"{what}, added by one in Go", "ms", minimal),
        figures.plain(f"{name}_over", f"{what}, ours less the minimal one", "ms", over),
    )


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
    """Make sure that every namespace is reviewed by the right webhook, and by no other."""
    ours, minimal = names.BATCH_CPU.encode(), b"bench.example.com/seen"
    for way, expected in ((REVIEWED, {ours}), (MINIMAL, {minimal}), (PLAIN, set())):
        async with asyncio.timeout(_PATIENCE):
            while True:
                answer = await connection.ask(wanted[way])
                if {mark for mark in (ours, minimal) if mark in answer} == expected:
                    break
                await asyncio.sleep(0.1)
