"""What an uninstallation removes, in which order, and what it leaves; values in, a plan out."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api import names, resources
from cli import reading
from cli.doctor.checkup import facts, findings, neighbours
from cli.install import process_pods, waiting_pods
from domain import wording

LEASES: Final = (
    "koordinator-manager", "koord-scheduler", "koord-descheduler", names.LEASE_GANG_BACKLOG,
)  # fmt: skip
SECRET: Final = "koord-webhook-certificates"  # noqa: S105 - the name of a Secret
WEBHOOK: Final = "koord-webhook"
SETTINGS: Final = (
    names.CONFIG_MAP_SLO, names.CONFIG_MAP_SCHEDULER, names.CONFIG_MAP_SWITCHES,
    names.CONFIG_MAP_GPU_TEMPLATES,
)  # fmt: skip
"""What the owner of the cluster writes; kept unless everything is to go."""
MEMORIES: Final = (names.CONFIG_MAP_DESCHEDULER_MEMORY, names.CONFIG_MAP_REPORT)
"""What the descheduler remembers of moves, and the manager of what colocation gave."""
OURSELVES: Final = "uninstall"
"""Component of the pod that may be running this."""
WRITERS: Final = frozenset(
    {
        "koord-manager",
        "koord-agent",
        "koord-device-daemon",
        "koord-webhook",
        "koord-extender",
        "koord-descheduler",
    }
)
"""Field managers of our processes."""
MAKERS: Final = frozenset({"koord-manager", "koord-extender", "koord-agent"})
"""Who our objects say made them."""
MADE: Final = (
    resources.NODE_METRICS, resources.NODE_SLOS, resources.SCHEDULE_EXPLANATIONS, resources.DEVICES,
    resources.NODE_RESOURCE_TOPOLOGIES, resources.POD_MIGRATION_JOBS,
)  # fmt: skip
"""Kinds of which our processes make objects by themselves."""
OURS: Final = ("koord.sh/", "koordinator.sh/", ".koordinator.sh/")
"""What our labels and annotations begin with, or contain."""
MARKED: Final = ("labels", "annotations")
WRONG_CLOCK: Final = 300.0
"""Seconds by which clocks may differ."""
HELM: Final = "meta.helm.sh/release-name"
POLICY: Final = "helm.sh/resource-policy"


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What is to go."""

    namespace: str = names.NAMESPACE
    purge: bool = False
    """Also the custom resource definitions of ours, with all objects, and the settings."""
    keep_installation: bool = False
    """Leave what an installer made, except the workloads that would write again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Delete:
    """Remove exactly this object."""

    resource: resources.Resource
    name: str
    namespace: str = ""
    uid: str = ""

    def sentence(self) -> str:
        """Say what is done."""
        where = f"{self.namespace}/" if self.namespace else ""
        return f"delete {self.resource.kind} {where}{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class Clean:
    """Take our fields off a node, in one write."""

    node: str
    body: Mapping[str, Any]
    fields: tuple[str, ...]

    def sentence(self) -> str:
        """Say what is done."""
        return f"take {findings.some(list(self.fields), 6)} off Node {self.node}"


Step = Delete | Clean | waiting_pods.Release
Found = tuple[resources.Resource, facts.Raw]


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """Everything there is that may have to go."""

    now: float
    unmoved: float
    """For how many seconds the manager's Lease was not renewed."""
    workloads: Sequence[Found]
    """Our Deployments and DaemonSets."""
    running: Sequence[facts.Raw]
    """Pods with our label, in any namespace."""
    leases: Sequence[facts.Raw]
    registrations: Sequence[Found]
    """Our webhook configuration objects."""
    secrets: Sequence[facts.Raw]
    reports: Sequence[Found]
    """Objects of the kinds that our processes make."""
    nodes: Sequence[facts.Raw]
    pods: Sequence[facts.Pod]
    classes: Sequence[facts.Raw] = ()
    """PriorityClasses with our label: of the installation, and of stand-ins."""
    installed: Sequence[Found] = ()
    """Everything else with our label."""
    memory: Sequence[facts.Raw] = ()
    """ConfigMaps that the descheduler made."""
    settings: Sequence[facts.Raw] = ()
    definitions: Sequence[facts.Raw] = ()
    """Custom resource definitions of our groups."""
    unreadable: Sequence[str] = ()
    """Objects of an unexpected shape, which are left as they are."""


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, what to do when everything is quiet, and what people have to know."""

    stop: tuple[Step, ...]
    """End our processes, and let the API server forget them."""
    gates: tuple[waiting_pods.OpenGates, ...]
    """Let pods go that wait behind our gates; from then on no webhook adds any."""
    clean: tuple[Step, ...]
    """Remove what they wrote."""
    busy: tuple[str, ...]
    """What may still write, and is waited for."""
    unstopped: tuple[str, ...]
    """What of it does not end; nothing is cleaned before this is empty."""
    refusal: str
    """Why nothing can be done before a person did something."""
    notes: tuple[str, ...]
    at_risk: frozenset[str]
    """Nodes that may stay as they are; known only while their agents are there."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """Everything, in order."""
        return (*self.stop, *self.gates, *self.clean)

    def sentences(self) -> Iterator[str]:
        """Say every step; what is done for pods that wait, for all of them together."""
        together = [one for one in self.steps if isinstance(one, waiting_pods.Release)]
        yield from (one.sentence() for one in self.stop)
        yield from waiting_pods.sentences(together)
        yield from (
            one.sentence() for one in self.clean if not isinstance(one, waiting_pods.Release)
        )


def plan(there: Inventory, options: Options) -> Plan:
    """Plan what is left to do."""
    stop: tuple[Step, ...] = (
        *(_delete(resource, item) for resource, item in there.workloads),
        *(_delete(resource, item) for resource, item in there.registrations),
    )
    clean: tuple[Step, ...] = (
        *waiting_pods.conditions(there.pods),
        *(_delete(resources.PODS, stand_in) for stand_in in _stand_ins(there)),
        *_nodes(there.nodes),
        *(_delete(resource, item) for resource, item in there.reports if _made_by_us(item)),
        *(_delete(resources.PRIORITY_CLASSES, one) for one in there.classes if _made_by_us(one)),
        *(_delete(resources.SECRETS, secret) for secret in there.secrets),
        *(_delete(resources.LEASES, lease) for lease in there.leases),
        *(_delete(resources.CONFIG_MAPS, one) for one in there.memory),
        *_installation(there, options),
        *_purged(there, options),
    )
    busy = tuple(_busy(there, options))
    return Plan(
        stop=stop,
        gates=tuple(waiting_pods.gates(there.pods)),
        clean=clean,
        busy=tuple(what for what, _ in busy),
        unstopped=tuple(what for what, is_ending in busy if not is_ending),
        refusal=_refusal(there),
        notes=tuple(_notes(there, options)),
        at_risk=process_pods.nodes_at_risk(there.running),
    )


def _delete(resource: resources.Resource, item: facts.Raw) -> Delete:
    metadata = item.get("metadata") or {}
    return Delete(
        resource, facts.name(item), str(metadata.get("namespace", "")), str(metadata.get("uid", ""))
    )


def _busy(there: Inventory, options: Options) -> Iterator[tuple[str, bool]]:
    """Return what may still write, and whether it is ending."""
    for _, workload in there.workloads:
        ending = process_pods.is_ending(workload)
        yield f"{workload.get('kind', 'workload')} {facts.key(workload)}", ending
    for pod in there.running:
        is_here = (pod.get("metadata") or {}).get("namespace") == options.namespace
        is_other = facts.component(pod) != OURSELVES
        if is_here and is_other and not process_pods.has_ended(pod):
            yield f"pod {facts.key(pod)}", process_pods.is_ending(pod)
    for lease in there.leases:
        if _is_held(lease, there):
            holder = (lease.get("spec") or {}).get("holderIdentity")
            yield f"{holder}, which holds Lease {facts.key(lease)}", False


def _is_held(lease: facts.Raw, there: Inventory) -> bool:
    """Whether the manager that holds a Lease may be alive.

    Its stamps are by its own clock; so what counts is for how long we saw none, unless they are so
    old that no clock is that wrong.
    """
    age = facts.lease_age(lease, there.now)
    if facts.name(lease) != LEASES[0] or age is None:
        return False
    seconds = float((lease.get("spec") or {}).get("leaseDurationSeconds") or 15)
    return there.unmoved <= seconds and age <= seconds + WRONG_CLOCK


def _refusal(there: Inventory) -> str:
    static = [facts.key(pod) for pod in there.running if process_pods.is_static(pod)]
    if not static:
        return ""
    return (
        f"the extender runs as a static pod ({findings.some(static)}), and kube-scheduler there "
        "depends on it; first give kube-scheduler its former configuration, then remove the "
        "manifest of the static pod, then run this again"
    )


def _stand_ins(there: Inventory) -> Iterator[facts.Raw]:
    for pod in there.pods:
        if names.LABEL_STAND_IN in pod.labels:
            metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
            yield {"metadata": metadata}


def _made_by_us(item: facts.Raw) -> bool:
    is_job = names.ANNOTATION_JOB_CREATED_BY in facts.meta(item, "annotations")
    return is_job or facts.meta(item, "labels").get(names.LABEL_CREATED_BY) in MAKERS


def _nodes(nodes: Sequence[facts.Raw]) -> Iterator[Clean]:
    for node in nodes:
        lent = sorted(reading.either(frozenset[str](), _lent, node))
        marks = {
            part: sorted(reading.either(frozenset[str](), _marks, node, part)) for part in MARKED
        }
        body: dict[str, Any] = {}
        if lent:
            body["status"] = {part: dict.fromkeys(lent) for part in ("capacity", "allocatable")}
        metadata = {part: dict.fromkeys(keys) for part, keys in marks.items() if keys}
        if metadata:
            body["metadata"] = metadata
        if body:
            fields = (*lent, *marks["labels"], *marks["annotations"])
            yield Clean(facts.name(node), body, fields)


def _lent(node: facts.Raw) -> frozenset[str]:
    """Return the lent resources of a node that no other controller claims."""
    owners = neighbours.lent_fields(node)
    strangers = [f for who, f in owners.items() if who not in WRITERS | {"kubelet"}]
    claimed = frozenset[str]().union(*strangers)
    status = node.get("status") or {}
    shown = {*(status.get("capacity") or {}), *(status.get("allocatable") or {})}
    # A kubelet that restarts zeroes what no device plug-in of it offers, and owns it from then on.
    ours = frozenset[str]().union(*owners.values()) - claimed
    return ours & shown


def _marks(node: facts.Raw, part: str) -> frozenset[str]:
    """Return the labels or annotations of a node that our processes wrote."""
    ours: set[str] = set()
    others: set[str] = set()
    for entry in facts.stated(node.get("metadata") or {}, "managedFields"):
        written = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get(f"f:{part}") or {}
        keys = {key.removeprefix("f:") for key in written if key.startswith("f:")}
        (ours if entry.get("manager") in WRITERS else others).update(keys)
    there = facts.meta(node, part)
    return frozenset(
        key for key in ours - others if key in there and any(mark in key for mark in OURS)
    )


def _installation(there: Inventory, options: Options) -> Iterator[Delete]:
    if options.keep_installation:
        return
    for resource, item in there.installed:
        annotations = facts.meta(item, "annotations")
        kept = {*SETTINGS, *MEMORIES}
        is_setting = resource == resources.CONFIG_MAPS and facts.name(item) in kept
        if HELM in annotations or is_setting or _made_by_us(item):
            continue
        if annotations.get(POLICY) == "keep" and not options.purge:
            continue
        yield _delete(resource, item)


def _purged(there: Inventory, options: Options) -> Iterator[Delete]:
    if not options.purge:
        return
    for item in there.settings:
        yield _delete(resources.CONFIG_MAPS, item)
    for definition in there.definitions:
        if facts.is_ours(definition):
            yield _delete(resources.CRDS, definition)


def _notes(there: Inventory, options: Options) -> Iterator[str]:
    yield from _about_pods(there.pods)
    if there.unreadable:
        count, odd = len(there.unreadable), findings.some(list(there.unreadable))
        stay = wording.form(count, "stays as it is", "stay as they are")
        yield f"{wording.count(count, 'object', 'objects')} cannot be read and {stay}: {odd}"
    releases = {
        str(facts.meta(item, "annotations")[HELM])
        for _, item in (*there.workloads, *there.installed)
        if HELM in facts.meta(item, "annotations")
    }
    if not options.keep_installation:
        yield (
            f"namespace {options.namespace} is kept, others may have put something into it: "
            f"`kubectl delete namespace {options.namespace}` removes it with all that is in it"
        )
    for release in sorted(releases) if not options.keep_installation else ():
        yield f"run `helm uninstall {release} -n {options.namespace}` next: Helm keeps a record"
    made = [item for _, item in there.reports if not _made_by_us(item)]
    if made:
        kinds = "NodeMetrics, NodeSLOs, explanations, Devices, topologies, PodMigrationJobs"
        objects = wording.count(len(made), "object", "objects")
        yield f"{objects} that people made {wording.form(len(made), 'is', 'are')} kept: {kinds}"
    claimed = sorted(
        manager
        for node in there.nodes
        for manager, fields in reading.either({}, neighbours.lent_fields, node).items()
        if fields and manager not in WRITERS | {"kubelet"}
    )
    if claimed:
        who = findings.some(sorted(set(claimed)))
        yield f"batch or mid resources of some nodes are kept, {who} writes them"
    if not options.purge:
        yield "custom resource definitions, their objects and the settings are kept (see --purge)"
        return
    foreign = [facts.name(d) for d in there.definitions if not facts.is_ours(d)]
    if foreign:
        yield f"definitions of another installation are kept: {findings.some(foreign)}"


def _about_pods(pods: Sequence[facts.Pod]) -> Iterator[str]:
    batch = [pod.key for pod in pods if pod.is_batch and not pod.ended and pod.node]
    if batch:
        count = len(batch)
        yield (
            f"{wording.count(count, 'pod asks', 'pods ask')} for batch or mid resources; "
            f"{wording.form(count, 'it keeps', 'they keep')} running, and once ended nothing like "
            f"{wording.form(count, 'it', 'them')} can be placed: {findings.some(batch)}"
        )
    waiting = [p.key for p in pods if p.is_batch and not p.node and not p.ended]
    if waiting:
        ask = wording.count(len(waiting), "waiting pod asks", "waiting pods ask")
        yield f"{ask} for what no node lends: {findings.some(waiting)}"
    ours = [p.key for p in pods if p.scheduler == names.SCHEDULER and not p.node and not p.ended]
    if ours:
        yield (
            f"{wording.count(len(ours), 'waiting pod names', 'waiting pods name')} the scheduler "
            f"{names.SCHEDULER}, which ends: {findings.some(ours)}"
        )
