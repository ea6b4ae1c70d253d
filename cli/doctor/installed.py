"""`koord doctor installation`: whether what was installed works, asked from inside the cluster.

The chart's `helm test` runs it in a pod. It reads only the workloads of its own namespace and the
two configurations of the webhook, so that its account needs no right to read the cluster.
"""

import argparse
import asyncio
import dataclasses
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import aiohttp

from api import names, resources
from api.wire import durations
from cli.doctor import probes, survey
from cli.doctor.checkup import admission, facts, findings, installation
from cli.doctor.checkup.findings import Severity, Trap
from kube.client import client as clients
from kube.client import errors, failures
from process.runtime import clock as clocks

COMPONENTS: Final = ("webhook", "manager", "scheduler", "descheduler", "agent", "device-daemon")
ON_NODES: Final = frozenset({"agent", "device-daemon"})
"""Parts that DaemonSets run."""
PAUSE_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 5.0
_MOST_EXTENDERS: Final = 10
_LABELS: Final = ",".join(f"{label}={value}" for label, value in names.INSTALLED.items())

SILENT = Trap(
    "extender.silent", Severity.ERROR, "The extender does not answer",
    "look at the log of container `extender` and at the NetworkPolicy of the scheduler's pods",
)  # fmt: skip
NO_POD = Trap(
    "extender.no-pod", Severity.ERROR, "No pod with an extender runs",
    "look at the Deployment koord-scheduler",
)  # fmt: skip
TRAPS: Final = (SILENT, NO_POD)


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What was installed, and where."""

    namespace: str = names.NAMESPACE
    probe_namespace: str = "default"
    """Where trial pods are sent in dry runs."""
    components: tuple[str, ...] = COMPONENTS[:2]
    """Parts of the installation that have to be ready."""
    extenders: tuple[str, ...] = ()
    """Addresses of extenders; without any, the pods of the scheduler are asked."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord doctor installation`."""
    asked = parser.add_argument_group("of koord doctor installation")
    asked.add_argument(
        "--components",
        type=_components,
        default=COMPONENTS[:2],
        metavar="NAMES",
        help=f"parts that have to be ready, of {','.join(COMPONENTS)} (default webhook,manager)",
    )
    asked.add_argument(
        "--extender",
        action="append",
        default=[],
        metavar="URL",
        help="where an extender answers, without its path; without it the pods of the scheduler "
        "are asked; may be given several times",
    )
    asked.add_argument(
        "--wait",
        type=durations.seconds,
        default=0.0,
        metavar="TIME",
        help="how long what is wrong may take to become right, such as 60s",
    )


def _components(text: str) -> tuple[str, ...]:
    asked = tuple(part for part in text.split(",") if part)
    unknown = [part for part in asked if part not in COMPONENTS]
    if unknown:
        listed = ", ".join(COMPONENTS)
        raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}; choose of {listed}")
    return asked


def options(chosen: argparse.Namespace) -> Options:
    """Return what the arguments ask for."""
    urls = tuple(url.rstrip("/") for url in chosen.extender if url)
    return Options(chosen.koord_namespace, chosen.probe_namespace, chosen.components, urls)


async def settled(
    kube: clients.Client, clock: clocks.Clock, options: Options, seconds: float
) -> Sequence[findings.Finding]:
    """Examine again until nothing is wrong any more, at most so long."""
    ends = clock.monotonic() + seconds
    while True:
        found = await examine(kube, options)
        wrong = any(one.severity is Severity.ERROR for one in found)
        if not wrong or clock.monotonic() + PAUSE_SECONDS > ends:
            return found
        await clock.sleep(PAUSE_SECONDS)


async def examine(kube: clients.Client, options: Options) -> Sequence[findings.Finding]:
    """Return what is wrong, and what is fine; what cannot be learned is wrong here."""
    return (
        *await _section("workload", "every part that was installed is ready", ready(kube, options)),
        *await _section("webhook", "the API server calls the webhook", admits(kube, options)),
        *await _section("extender", "the extender answers", answers(kube, options)),
    )


async def _section(
    name: str, fine: str, asked: AsyncIterator[findings.Finding]
) -> list[findings.Finding]:
    found: list[findings.Finding] = []
    try:
        found = [one async for one in asked]
    except errors.KubeError as error:
        found = [findings.could_not(name, facts.Unknown("the API server", str(error)))]
    return [_told(one) for one in found] or [findings.Finding(name, Severity.OK, fine)]


def _told(one: findings.Finding) -> findings.Finding:
    unknown = one.severity is Severity.UNKNOWN
    return dataclasses.replace(one, severity=Severity.ERROR) if unknown else one


async def ready(kube: clients.Client, options: Options) -> AsyncIterator[findings.Finding]:
    """Yield the parts that are missing or not ready."""
    there: set[str] = set()
    on_nodes = not ON_NODES.isdisjoint(options.components)
    kinds = (resources.DEPLOYMENTS, *([resources.DAEMON_SETS] if on_nodes else []))
    for resource in kinds:
        for item in (await kube.list(resource, options.namespace, labels=_LABELS)).items:
            if facts.component(item) in options.components:
                there.add(facts.component(item))
                for found in installation.readiness(resource.kind, item):
                    yield found
    for component in options.components:
        if component not in there:
            yield installation.NOT_INSTALLED.found(
                f"{options.namespace} has no workload with {names.LABEL_COMPONENT}={component}",
                f"{options.namespace}/koord-{component}",
            )


async def admits(kube: clients.Client, options: Options) -> AsyncIterator[findings.Finding]:
    """Yield what the webhook did not do with trial pods."""
    configurations = [
        await kube.get(resource, survey.WEBHOOK)
        for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)
    ]
    modes = admission.modes(configurations)
    if modes:
        yield findings.Finding(
            "webhook",
            Severity.INFO,
            f"the webhook is set to {', '.join(sorted(modes))}: it changes and refuses nothing",
        )
        return
    probe = await probes.webhook(kube, options.probe_namespace)
    for found in admission.reached(probe, modes):
        yield found


async def answers(kube: clients.Client, options: Options) -> AsyncIterator[findings.Finding]:
    """Yield the extenders that do not answer; in place nobody else can reach them."""
    if "scheduler" not in options.components and not options.extenders:
        yield findings.Finding(
            "extender", Severity.INFO, "not asked: it is installed in place, or not at all"
        )
        return
    urls = options.extenders or tuple([one async for one in _urls(kube, options)])
    if not urls:
        yield NO_POD.found(f"{options.namespace} has no running pod of the scheduler")
    for problem in await asyncio.gather(*map(_problem, urls)):
        if problem:
            yield SILENT.found(problem)


async def _urls(kube: clients.Client, options: Options) -> AsyncIterator[str]:
    labels = f"{_LABELS},{names.LABEL_COMPONENT}=scheduler"
    pods = (await kube.list(resources.PODS, options.namespace, labels=labels)).items
    running = [one for one in pods if (one.get("status") or {}).get("phase") == "Running"]
    for pod in running[:_MOST_EXTENDERS]:
        address, port = pod["status"].get("podIP") or "", _port(pod)
        if address and port:
            yield f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def _port(pod: dict[str, Any]) -> int | None:
    for container in facts.stated(pod.get("spec") or {}, "containers"):
        for port in facts.stated(container, "ports"):
            if container.get("name") == "extender" and port.get("name") == "metrics":
                return int(port["containerPort"])
    return None


async def _problem(url: str) -> str:
    limit = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.get(f"{url}/readyz") as answer,
        ):
            said = (await answer.content.read(200)).decode(errors="replace").strip()
            return "" if answer.status == 200 else f"{url} is not ready: {said}"
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"{url} does not answer: {failures.unanswered(error)}"
