"""Who else is here that writes what we write, or counts what we change."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Final

from api import names
from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.findings import Severity, Trap
from domain.devices.requests import accelerators, network

KOORDINATOR = Trap(
    "neighbour.koordinator", Severity.ERROR,
    "Koordinator is installed as well: two systems write the same resources, policies and cgroups",
    "follow docs/takeover-from-koordinator.md, or uninstall one of the two",
)  # fmt: skip
FOREIGN_WEBHOOK = Trap(
    "neighbour.webhook", Severity.ERROR,
    "Another admission webhook applies colocation profiles: pods would be changed twice",
    "remove its configuration objects, or do not run ours",
)  # fmt: skip
SECOND_WRITER = Trap(
    "neighbour.second-writer", Severity.ERROR,
    "Another controller writes batch, mid or device resources of a node",
    "stop that writer; the field manager names it",
)  # fmt: skip
AGENT = Trap(
    "neighbour.agent", Severity.WARNING,
    "Another node agent manages cgroups of pods: the two would overwrite each other",
    "run only one agent per node: keep ours off those nodes by node affinity, or in observe mode",
)  # fmt: skip
AUTOSCALER = Trap(
    "neighbour.cluster-autoscaler", Severity.INFO,
    "A cluster autoscaler is installed: it counts what batch pods use as nothing, and may believe "
    "that a new node lends as much as an old one",
    "see docs/neighbours.md: make batch priorities expendable to it",
)  # fmt: skip
DESCHEDULER = Trap(
    "neighbour.descheduler", Severity.INFO,
    "A descheduler is installed: its utilisation is requests, in which batch pods count nothing",
    "let it leave pods of priority class koord-batch alone",
)  # fmt: skip

TRAPS = (KOORDINATOR, FOREIGN_WEBHOOK, SECOND_WRITER, AGENT, AUTOSCALER, DESCHEDULER)


@dataclasses.dataclass(frozen=True, slots=True)
class Sign:
    """How a neighbour's workload is recognised: by a part of an image's name."""

    images: tuple[str, ...]
    trap: Trap
    title: str


SIGNS: Final = (
    Sign(("koord-manager", "koordlet", "koord-descheduler", "koord-scheduler"), KOORDINATOR,
         "Koordinator"),
    Sign(("katalyst-agent",), AGENT, "Katalyst"),
    Sign(("vc-agent", "volcano-agent"), AGENT, "Volcano"),
    Sign(("crane-agent",), AGENT, "Crane"),
    Sign(("cluster-autoscaler",), AUTOSCALER, "Cluster Autoscaler"),
    Sign(("karpenter",), AUTOSCALER, "Karpenter"),
    Sign(("/descheduler",), DESCHEDULER, "descheduler"),
)  # fmt: skip


def run(known: facts.Facts) -> Iterator[findings.Finding]:
    """Look at workloads, at webhook configurations and at who owns fields of nodes."""
    workloads = (*facts.given(known.deployments), *facts.given(known.daemon_sets))
    for sign in SIGNS:
        found = [facts.key(w) for w in workloads if not facts.is_ours(w) and _bears(w, sign)]
        if found:
            yield sign.trap.found(f"{sign.title} runs as {findings.some(found)}", found[0])
    for configuration in facts.given(known.webhooks):
        if facts.name(configuration) == "koord-webhook":
            continue
        hooks = [
            str(hook.get("name"))
            for hook in facts.stated(configuration, "webhooks")
            if _is_koordinators(configuration, hook)
        ]
        if hooks:
            kind, name = configuration.get("kind"), facts.name(configuration)
            yield FOREIGN_WEBHOOK.found(
                f"{kind} {name} has {findings.some(hooks)}", f"{kind}/{name}"
            )
    yield from _writers(facts.given(known.nodes))


def _is_koordinators(configuration: facts.Raw, hook: facts.Raw) -> bool:
    # Old releases call their webhooks otherwise, but not the objects that hold them.
    named = facts.name(configuration).startswith("koordinator-")
    return named or str(hook.get("name")).endswith(".koordinator.sh")


def _bears(workload: facts.Raw, sign: Sign) -> bool:
    # Koordinator's Deployments are called like ours, so only images tell.
    return any(part in image for image in facts.images(workload) for part in sign.images)


def _writers(nodes: Sequence[facts.Raw]) -> Iterator[findings.Finding]:
    by_manager: dict[str, list[str]] = {}
    for node in nodes:
        for manager, fields in lent_fields(node).items():
            if fields and manager not in WRITERS:
                by_manager.setdefault(manager, []).append(facts.name(node))
    for manager, listed in sorted(by_manager.items()):
        yield SECOND_WRITER.found(
            f"{manager} writes batch, mid or device resources of {findings.some(listed)}", listed[0]
        )


WRITERS: Final = frozenset({"koord-manager", "kubelet"})
"""We, and the kubelet, which on a restart sets what it does not know to zero."""
LENT: Final = frozenset(
    f"f:{name}"
    for name in (
        *names.BATCH_RESOURCES,
        *names.MID_RESOURCES,
        *accelerators.RESOURCES,
        *network.RESOURCES,
    )
)


def lent_fields(node: facts.Raw) -> dict[str, frozenset[str]]:
    """Return which lent resources each field manager owns in a node's status."""
    owned: dict[str, frozenset[str]] = {}
    for entry in facts.stated(node.get("metadata") or {}, "managedFields"):
        status = (entry.get("fieldsV1") or {}).get("f:status") or {}
        fields = {*(status.get("f:capacity") or {}), *(status.get("f:allocatable") or {})} & LENT
        manager = str(entry.get("manager", ""))
        owned[manager] = owned.get(manager, frozenset()) | {f.removeprefix("f:") for f in fields}
    return owned


CHECK = findings.Check("neighbour", "no other controller does the same work here", TRAPS, run)
