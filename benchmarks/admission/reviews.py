"""What one review costs: ours with every rule on, beside a handler that decides nothing.

python -m benchmarks.admission.reviews [--rounds 5] [--seconds 3]

Both are processes of their own behind TLS, asked over eight kept connections by turns: as fast as
they answer, and at 1,000 a second. Ours holds three profiles that select the pod, and a thousand
namespaces with limits and quotas. The rules alone are timed here, without HTTP.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import uvloop
from aiohttp import web

from api.koordinator import colocation
from api.kubernetes import meta
from api.kubernetes.webhooks import admission
from benchmarks import figures
from benchmarks.admission import keepalive
from certs import issue
from domain.pods import namespace_limits
from domain.quota.tree import quota_trees
from process.configuration import settings as process_settings
from process.configuration import switches
from process.http import fast_path, ports, server
from process.runtime import clock as clocks
from process.runtime import collector, metrics
from simulator.processes import children
from webhook import gates, handlers, registry, review

OURS, NOTHING = "ours", "nothing"
SELECTED, PLAIN, CHECKED = "selected", "plain", "checked"
_CONNECTIONS = 8
_RATE = 1000
_WARM_SECONDS = 1.0
_NAMESPACES = 1000
_LABEL = "koordinator.sh/enable-colocation"
_PROFILES: tuple[dict[str, Any], ...] = (
    {"qosClass": "BE", "priorityClassName": "koord-batch", "koordinatorPriority": 1000},
    {"labels": {"team": "analytics"}, "annotations": {"example.com/note": "colocated"}},
    {"schedulerName": "koord-scheduler", "labelSuffixes": {"app": "-batch"}},
)
_OFF = (gates.SKIP_RESOURCES, gates.DISABLE_RECORD, gates.DISABLE_DEVICES)


def _picture() -> review.Picture:
    """Return a picture in which every rule has something to look at."""
    selector = {"matchLabels": {_LABEL: "true"}}
    spaces = [f"team-{number}" for number in range(_NAMESPACES)]
    bounds = namespace_limits.of_limit_range(
        {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}
    )
    return review.Picture(
        profiles=tuple(
            colocation.read_profile(
                {"metadata": {"name": f"profile-{n}"}, "spec": {"selector": selector, **spec}}
            )
            for n, spec in enumerate(_PROFILES)
        ),
        namespaces={name: {"kubernetes.io/metadata.name": name} for name in spaces},
        priority_classes={"koord-batch": review.PriorityClass("koord-batch", 5000)},
        draw=lambda _: 0,
        gates=frozenset(gates.DESCRIPTIONS) - frozenset(_OFF),
        trees=quota_trees.trees(
            (quota_trees.Member(f"quota-{name}", name, "t", False, (name,)) for name in spaces),
            (quota_trees.Pool("p", "t", meta.LabelSelector(match_labels={"pool": "t"})),),
        ),
        limits={name: [("limits", bounds)] for name in spaces},
    )


def _pod(labels: Mapping[str, str], size: int) -> dict[str, Any]:
    """Return a pod of this many bytes, as a controller creates it."""
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1"}}
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "workload-",
            "namespace": "team-7",
            "labels": {"app": "web", **labels},
            "annotations": {"example.com/padding": ""},
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "image": "example.com/app:v1", "resources": resources}],
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
        },
    }
    missing = max(0, size - len(json.dumps(made)))
    made["metadata"]["annotations"]["example.com/padding"] = "x" * missing
    return made


def _review(pod: dict[str, Any]) -> bytes:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "namespace": "team-7",
        "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(body, separators=(",", ":")).encode()


BODIES = {
    SELECTED: ("/mutate-pod", _review(_pod({_LABEL: "true"}, 7600))),
    PLAIN: ("/mutate-pod", _review(_pod({}, 7600))),
    CHECKED: ("/validate-pod", _review(_pod({}, 7600))),
}


# --- the two servers ----------------------------------------------------------------------------


def _admission() -> handlers.Admission:
    picture = _picture()
    return handlers.Admission(lambda: picture, metrics.Registry(), switches.Switches("webhook"))


@contextlib.asynccontextmanager
async def _ours(port: int, folder: Path) -> AsyncIterator[None]:
    reviews = _admission()
    app = web.Application()
    app.add_routes(reviews.routes())
    app[fast_path.ROUTES] = reviews.short_way()
    tls = process_settings.TlsSettings(
        cert_file=folder / "tls.crt", key_file=folder / "tls.key", reload_seconds=10.0
    )
    listening = process_settings.ServerSettings(host="127.0.0.1", port=port, tls=tls)
    async with server.running_site(app, listening):
        yield


@contextlib.asynccontextmanager
async def _nothing(port: int, folder: Path) -> AsyncIterator[None]:
    """Serve a plain aiohttp handler that reads the body and says yes."""
    yes = admission.encode(admission.allowed("705ab4f5-6393-11e8-b7cc-42010a800002"))

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=yes, content_type="application/json")

    app = web.Application()
    app.add_routes([web.post("/mutate-pod", handle)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    try:
        yield
    finally:
        await runner.cleanup()


async def _serve(name: str, port: int, folder: Path) -> None:
    # Both get what our processes do about garbage.
    async with collector.running(), (_ours if name == OURS else _nothing)(port, folder):
        await asyncio.Event().wait()


@dataclasses.dataclass(frozen=True, slots=True)
class Served:
    """One of the two, running."""

    pid: int
    url: str
    connections: list[keepalive.Connection]

    def asking(self, name: str) -> bytes:
        """Return the request of a review as an API server sends it."""
        path, body = BODIES[name]
        return keepalive.request(f"{self.url}{path}?timeout=2s", body)


@contextlib.asynccontextmanager
async def _child(name: str, folder: Path, ca: bytes) -> AsyncIterator[Served]:
    (port,) = ports.take(1)
    module = "benchmarks.admission.reviews"
    flags = (f"--serve={name}", f"--port={port}", f"--folder={folder}")
    child = await children.start(name, (sys.executable, "-m", module, *flags), folder)
    try:

        async def listens() -> bool:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return True
            return False

        await children.ready(child, listens, clock=clocks.SystemClock())
        url = f"https://127.0.0.1:{port}"
        async with keepalive.connected(url, ca, _CONNECTIONS) as connections:
            yield Served(child.pid, url, connections)
    finally:
        await child.stop()


# --- what is measured ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """What one round of one kind of review showed."""

    per_second: float
    cpu_microseconds: float
    p99: float
    p99_at_rate: float


async def _round(served: Served, wanted: bytes, seconds: float) -> Round:
    before = figures.cpu_seconds(served.pid)
    taken = await keepalive.closed_loop(served.connections, wanted, seconds)
    used = figures.cpu_seconds(served.pid) - before
    steady = await keepalive.open_loop(served.connections, wanted, _RATE, seconds)
    return Round(
        len(taken) / seconds,
        used / len(taken) * 1e6,
        figures.percentile(taken, 0.99),
        figures.percentile(steady, 0.99),
    )


async def _measured(arguments: argparse.Namespace, folder: Path, ca: bytes) -> None:
    async with _child(OURS, folder, ca) as ours, _child(NOTHING, folder, ca) as nothing:
        # What is measured is one core; the questions come from another.
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) > 1:
            for served in (ours, nothing):
                os.sched_setaffinity(served.pid, cores[:1])
            os.sched_setaffinity(0, cores[1:])
        answer = await ours.connections[0].ask(ours.asking(SELECTED))
        assert b"JSONPatch" in answer, answer
        who = [(ours, SELECTED), (nothing, SELECTED), (ours, PLAIN)]
        found: dict[tuple[int, str], list[Round]] = {}
        for served, name in who:
            await keepalive.closed_loop(served.connections, served.asking(name), _WARM_SECONDS)
        for _ in range(arguments.rounds):
            for served, name in who:
                one = await _round(served, served.asking(name), arguments.seconds)
                found.setdefault((served.pid, name), []).append(one)
        _show(found[ours.pid, SELECTED], found[nothing.pid, SELECTED], found[ours.pid, PLAIN])
        print(f"resident {figures.resident(ours.pid):.0f} MiB")


def _show(ours: Sequence[Round], nothing: Sequence[Round], plain: Sequence[Round]) -> None:
    def each(rounds: Sequence[Round], field: str) -> list[float]:
        return [getattr(one, field) for one in rounds]

    against = "a handler of aiohttp that decides nothing"
    figures.show(
        figures.plain(
            "F6.reviews", "reviews answered by one core, three profiles, every rule", "1/s",
            each(ours, "per_second"), ">= 3000",
        ),
        figures.plain(
            "F6.reviews_p99_1000", "review at 1,000/s, p99", "ms",
            each(ours, "p99_at_rate"), "<= 3",
        ),
        figures.paired(
            "F6.reviews_cpu", "processor time of a review", "us",
            each(ours, "cpu_microseconds"), each(nothing, "cpu_microseconds"), against,
        ),
        figures.paired(
            "F6.reviews_plain_cpu", "processor time of a review that no profile concerns", "us",
            each(plain, "cpu_microseconds"), each(nothing, "cpu_microseconds"), against,
        ),
        figures.paired(
            "F6.reviews_rate", "reviews answered by one core", "1/s",
            each(ours, "per_second"), each(nothing, "per_second"), against,
        ),
    )  # fmt: skip


def _rules_alone(rounds: int) -> None:
    """Time decoding, rules and patch, without HTTP."""
    reviews, picture = _admission(), _picture()
    for name, (path, body) in BODIES.items():
        route, taken = registry.ROUTES[path], []
        asked = admission.decode(body)
        question = review.of(asked)
        for decide in (
            lambda: reviews.answer(route, admission.decode(body), picture),  # noqa: B023
            lambda: route.decide(question, picture),  # noqa: B023
        ):
            values = []
            for _ in range(rounds):
                started = time.process_time()
                for _ in range(2000):
                    decide()
                values.append((time.process_time() - started) / 2000 * 1e6)
            taken.append(values)
        whole, rules = taken
        figures.show(
            figures.plain(f"F6.answer_{name}", f"answer to a {name} pod, no HTTP", "us", whole),
            figures.plain(f"F6.rules_{name}", f"rules for a {name} pod", "us", rules),
        )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--serve", choices=(OURS, NOTHING), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.serve:
        uvloop.run(_serve(arguments.serve, arguments.port, arguments.folder))
        return
    print(figures.machine(), flush=True)
    _rules_alone(arguments.rounds)
    with tempfile.TemporaryDirectory() as temporary:
        folder, now = Path(temporary), clocks.SystemClock().now()
        signer = issue.authority("benchmark", now)
        pair = issue.leaf(signer, issue.Subject("reviews", ips=("127.0.0.1",)), now)
        (folder / "tls.crt").write_bytes(pair.certificate)
        (folder / "tls.key").write_bytes(pair.key)
        uvloop.run(_measured(arguments, folder, signer.certificate))


if __name__ == "__main__":
    main()
