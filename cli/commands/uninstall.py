"""Remove all that this product created in a cluster; keep what people made."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Sequence
from typing import Any, Final, assert_never

from api import names, resources
from cli import clusters
from cli.doctor import survey
from cli.doctor.checkup import facts
from cli.install import process_pods, releasing, removal, waiting_pods
from cli.output import terminal
from kube.client import client as clients
from kube.client import errors, transport
from process.runtime import clock as clocks
from process.runtime import entry

LIMITS: Final = transport.Limits(request_seconds=30.0, attempts=4)
LOOK_SECONDS: Final = 1.0
SETTLE_SECONDS: Final = 30.0
SELECTOR: Final = ",".join(f"{label}={value}" for label, value in names.INSTALLED.items())
NOTHING: Final = "nothing of it is there any more"

_MONITORING: Final = "monitoring.coreos.com"
NETWORK_POLICIES: Final = resources.Resource(
    "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True
)


def _policy(kind: str, plural: str) -> resources.Resource:
    return resources.Resource("admissionregistration.k8s.io", "v1", plural, kind, False)


INSTALLED: Final = (
    resources.SERVICES, resources.CONFIG_MAPS, resources.SECRETS, resources.JOBS,
    resources.POD_DISRUPTION_BUDGETS, NETWORK_POLICIES,
    resources.Resource(_MONITORING, "v1", "servicemonitors", "ServiceMonitor", True),
    resources.Resource(_MONITORING, "v1", "podmonitors", "PodMonitor", True),
    resources.Resource(_MONITORING, "v1", "prometheusrules", "PrometheusRule", True),
    resources.PRIORITY_CLASSES,
    _policy("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    _policy("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    # Last, since the user who runs this may depend on them.
    resources.SERVICE_ACCOUNTS, resources.ROLE_BINDINGS, resources.ROLES,
    resources.CLUSTER_ROLE_BINDINGS, resources.CLUSTER_ROLES,
)  # fmt: skip
"""Kinds of objects that an installer makes, in the order in which they go."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord uninstall`."""
    parser.description = (
        "Stop our processes and remove what they and the installation created. Custom resource "
        "definitions, their objects and the settings of the cluster are kept unless --purge. Pods "
        "that wait behind our scheduling gates are let go and lose our condition; other pods are "
        "never touched, nor is the note of their placement on them. Can be interrupted and run "
        "again. Exit code: 0 nothing is left; 1 something is left."
    )
    clusters.add_arguments(parser)
    clusters.add_installation(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument(
        "--purge",
        action="store_true",
        help="also our custom resource definitions with ALL their objects, and the settings",
    )
    parser.add_argument(
        "--keep-installation",
        action="store_true",
        help="leave to Helm or kubectl what they made, except the workloads; for a hook",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="how long to wait for our processes to end (default %(default)s)",
    )
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    try:
        return asyncio.run(_uninstall(chosen))
    except errors.KubeError as error:
        terminal.warn(f"koord uninstall: {error}")
        return entry.FAILED


async def _uninstall(chosen: argparse.Namespace) -> int:
    clock = clocks.SystemClock()
    access = await clusters.connect(chosen)
    options = removal.Options(
        chosen.koord_namespace, purge=chosen.purge, keep_installation=chosen.keep_installation
    )
    async with clients.Client(
        access, clock=clock, user_agent="koord-uninstall", limits=LIMITS
    ) as kube:
        where = clusters.described(chosen, access)
        terminal.say(f"cluster: {where}, namespace {options.namespace}")
        uninstaller = Uninstaller(kube, clock, options, chosen.timeout)
        if chosen.dry_run:
            await uninstaller.show()
            return entry.OK
        if not chosen.yes and not await uninstaller.agreed(where):
            return entry.FAILED
        return entry.OK if await uninstaller.run() else entry.FAILED


class Uninstaller:
    """Looks, plans, does, and looks again, until nothing is left to do."""

    def __init__(
        self,
        kube: clients.Client,
        clock: clocks.Clock,
        options: removal.Options,
        timeout: float,
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._options = options
        self._timeout = timeout
        self._reader = Reader(kube, clock, options)
        self._failures: list[str] = []

    async def show(self) -> None:
        """Say what would be done."""
        wanted = removal.plan(await self._reader.inventory(), self._options)
        for sentence in wanted.sentences():
            terminal.say(f"would {sentence}")
        if not wanted.steps:
            terminal.say(NOTHING)
        if wanted.refusal:
            terminal.say(f"cannot begin: {wanted.refusal}")
        _tell_notes(wanted.at_risk, wanted)

    async def agreed(self, where: str) -> bool:
        """Show the plan and ask whether to carry it out."""
        await self.show()
        if not sys.stdin.isatty():
            terminal.say("nothing was done: pass --yes, since there is no terminal to ask at")
            return False
        terminal.ask(f"carry it out on {where}? [y/N]")
        return (await asyncio.to_thread(sys.stdin.readline)).strip().lower() in ("y", "yes")

    async def run(self) -> bool:
        """Carry it out; return whether nothing is left."""
        wanted = removal.plan(await self._reader.inventory(), self._options)
        if wanted.refusal:
            terminal.say(f"cannot begin: {wanted.refusal}")
            return False
        at_risk = wanted.at_risk
        if wanted.steps or wanted.busy:
            await self._all(wanted.stop)
            # No webhook adds a gate from now on, and pods need not wait until processes end.
            await self._release(removal.plan(await self._reader.inventory(), self._options).gates)
            quiet = await self._quiet()
            at_risk |= quiet.at_risk
            if quiet.unstopped:
                return self._not_cleaned(quiet, at_risk)
            await self._release(_releases(quiet))
            await self._all([step for step in quiet.steps if not _is_release(step)])
            wanted = await self._settled()
        _tell_notes(at_risk, wanted)
        return self._told(wanted)

    def _not_cleaned(self, wanted: removal.Plan, at_risk: frozenset[str]) -> bool:
        self._tell_failures()
        for note in process_pods.about(at_risk):
            terminal.say(f"note: {note}")
        terminal.say(
            f"not cleaned: {', '.join(wanted.unstopped)} would write again; stop it, then run this"
        )
        return False

    async def _settled(self) -> removal.Plan:
        """Look until nothing is left; the API server takes its time over definitions."""
        deadline = self._clock.monotonic() + SETTLE_SECONDS
        while True:
            wanted = removal.plan(await self._reader.inventory(), self._options)
            if not wanted.steps or self._failures or self._clock.monotonic() >= deadline:
                return wanted
            # A pod that was being created while the webhook was removed may still have a gate.
            await self._release(_releases(wanted))
            await self._clock.sleep(LOOK_SECONDS)

    def _told(self, wanted: removal.Plan) -> bool:
        self._tell_failures()
        if wanted.steps:
            for sentence in wanted.sentences():
                terminal.say(f"left: {sentence}")
            terminal.say("something is left; run this again")
        else:
            terminal.say(NOTHING)
        return not wanted.steps and not self._failures

    def _tell_failures(self) -> None:
        for failure in dict.fromkeys(self._failures):
            terminal.say(f"failed: {failure}")

    async def _quiet(self) -> removal.Plan:
        """Wait until no process of ours can write any more, or for as long as is allowed."""
        deadline = self._clock.monotonic() + self._timeout
        told: tuple[str, ...] = ()
        while True:
            wanted = removal.plan(await self._reader.inventory(), self._options)
            if not wanted.busy:
                return wanted
            if wanted.busy != told:
                terminal.say(f"waiting for {', '.join(wanted.busy)}")
                told = wanted.busy
            if self._clock.monotonic() >= deadline:
                break
            await self._clock.sleep(LOOK_SECONDS)
        if not wanted.unstopped:
            # Their nodes may be gone for good, and no other pods replace them.
            terminal.say(f"going on without waiting for {', '.join(wanted.busy)}")
        return wanted

    async def _release(self, releases: Sequence[waiting_pods.Release]) -> None:
        pods = releasing.Releasing(self._kube, self._clock)
        await pods.run(releases)
        self._failures += pods.failures

    async def _all(self, steps: Sequence[removal.Step]) -> None:
        for step in steps:
            try:
                await self._do(step)
            except (errors.NotFound, errors.Conflict):
                continue  # Gone meanwhile, or another object by now.
            except errors.KubeError as error:
                self._failures.append(f"{step.sentence()}: {error}")
            else:
                terminal.say(step.sentence())

    async def _do(self, step: removal.Step) -> None:
        match step:
            case removal.Delete(resource, name, namespace, uid):
                await self._kube.delete(resource, name, namespace, uid=uid)
            case removal.Clean(node, body):
                await self._kube.patch(
                    resources.NODES,
                    node,
                    body,
                    subresource="status",
                    field_manager="koord-uninstall",
                )
            case waiting_pods.OpenGates() | waiting_pods.DropCondition():
                await releasing.one(self._kube, step)
            case _:
                assert_never(step)


class Reader:
    """Reads what there is to remove, and nothing for which an option leaves no need."""

    def __init__(self, kube: clients.Client, clock: clocks.Clock, options: removal.Options) -> None:
        self._kube = kube
        self._clock = clock
        self._options = options
        self._stamp: tuple[str, float] = ("", 0.0)

    async def inventory(self) -> removal.Inventory:
        """Read everything anew."""
        options, own = self._options, self._options.namespace
        surveyor = survey.Surveyor(self._kube, self._clock, survey.Options(own), lambda _text: None)
        leases = await self._named(resources.LEASES, removal.LEASES, own)
        return removal.Inventory(
            now=self._clock.now(),
            unmoved=self._unmoved(leases),
            workloads=await self._listed((resources.DEPLOYMENTS, resources.DAEMON_SETS), own),
            running=[item for _, item in await self._listed((resources.PODS,))],
            leases=leases,
            registrations=[
                (resource, item)
                for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)
                for item in await self._named(resource, (removal.WEBHOOK,))
            ],
            secrets=await self._named(resources.SECRETS, (removal.SECRET,), own),
            reports=[
                (resource, item)
                for resource in removal.MADE
                for item in await _served(surveyor.trimmed(resource, survey.slim))
            ],
            classes=[item for _, item in await self._listed((resources.PRIORITY_CLASSES,))],
            nodes=await surveyor.trimmed(resources.NODES, survey.node),
            pods=await surveyor.pods(),
            unreadable=surveyor.unreadable,
            memory=await self._named(resources.CONFIG_MAPS, removal.MEMORIES, own),
            installed=[] if options.keep_installation else await self._installed(),
            settings=await self._named(resources.CONFIG_MAPS, removal.SETTINGS, own)
            if options.purge
            else [],
            definitions=await self._definitions() if options.purge else [],
        )

    def _unmoved(self, leases: Sequence[facts.Raw]) -> float:
        """Return since when the manager's Lease has said what it says now, as seen from here."""
        told = next((str(lease.get("spec")) for lease in leases if _is_manager(lease)), "")
        now = self._clock.monotonic()
        if told != self._stamp[0]:
            self._stamp = (told, now)
        return now - self._stamp[1]

    async def _listed(
        self, wanted: Sequence[resources.Resource], namespace: str = ""
    ) -> list[removal.Found]:
        found: list[removal.Found] = []
        for resource in wanted:
            listing = _items(self._kube.list(resource, namespace, labels=SELECTOR))
            found += [(resource, item) for item in await _served(listing)]
        return found

    async def _named(
        self, resource: resources.Resource, wanted: Sequence[str], namespace: str = ""
    ) -> list[facts.Raw]:
        found: list[facts.Raw] = []
        for name in wanted:
            try:
                found.append(await self._kube.get(resource, name, namespace))
            except errors.NotFound:
                continue
        return found

    async def _installed(self) -> list[removal.Found]:
        return await self._listed(INSTALLED)

    async def _definitions(self) -> list[facts.Raw]:
        groups = {resource.group for resource in resources.CUSTOM}
        found = await self._kube.list(resources.CRDS)
        return [d for d in found.items if (d.get("spec") or {}).get("group") in groups]


def _tell_notes(at_risk: frozenset[str], wanted: removal.Plan) -> None:
    for note in (*process_pods.about(at_risk), *wanted.notes):
        terminal.say(f"note: {note}")


def _is_release(step: removal.Step) -> bool:
    return isinstance(step, waiting_pods.Release)


def _releases(wanted: removal.Plan) -> list[waiting_pods.Release]:
    return [step for step in wanted.steps if isinstance(step, waiting_pods.Release)]


def _is_manager(lease: facts.Raw) -> bool:
    return facts.name(lease) == removal.LEASES[0]


async def _items(listing: Awaitable[clients.Listing]) -> Sequence[facts.Raw]:
    return (await listing).items


async def _served(reading: Awaitable[Any]) -> Sequence[facts.Raw]:
    """Return what is there; a kind that is not served has no objects."""
    try:
        found: Sequence[facts.Raw] = await reading
    except errors.ApiError as error:
        if not error.is_of_unserved_kind:
            raise
        return ()
    return found
