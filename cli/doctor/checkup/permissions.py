"""What our processes, and the person who asks, have to be allowed."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from api import names, resources
from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.findings import Severity, Trap

LACKING = Trap(
    "rbac.lacking", Severity.ERROR, "A process may not do what it has to",
    "apply the roles of this release again: upgrade the chart, or apply the manifests",
)  # fmt: skip
PERSON = Trap(
    "rbac.reader", Severity.WARNING,
    "The user may not read everything that doctor checks; parts are left out",
    "run it as a cluster administrator, or ask for the verbs that are named",
)  # fmt: skip

TRAPS = (LACKING, PERSON)

WATCH: Final = ("list", "watch")


class Setting(NamedTuple):
    """A value of the settings of the process that needs something."""

    section: str
    key: str
    value: object
    by_default: bool = True
    """Whether it is so where the settings do not say."""

    def holds(self, settings: facts.Raw) -> bool:
        """Whether the settings of the process have this value."""
        group = facts.section(settings, self.section)
        return bool(group[self.key] == self.value) if self.key in group else self.by_default


def _gate(name: str, *, by_default: bool) -> Setting:
    return Setting("featureGates", name, True, by_default)


@dataclasses.dataclass(frozen=True, slots=True)
class Need:
    """One rule that a role has to contain."""

    group: str
    resource: str
    """With the subresource, as in a role; several names where any of them will do."""
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    own_namespace: bool = False
    setting: Setting | None = None
    """Needed only where the process is set so; None: in any case."""
    unless: tuple[str, str] = ("", "")
    """Verb and resource of another right that makes this one unnecessary."""
    account: str = ""
    """The only account that needs it, where a process has several."""


_SLO, _HOOKS = resources.GROUP_SLO, resources.MUTATING_WEBHOOKS.group
_SCHEDULING: Final = resources.GROUP_SCHEDULING
_NETWORKS: Final = resources.CLUSTER_NETWORK_TOPOLOGIES
_NETWORK: Final = (names.DEFAULT_NETWORK_TOPOLOGY,)
_CONFIGURATIONS = (resources.MUTATING_WEBHOOKS.plural, resources.VALIDATING_WEBHOOKS.plural)
_EVENTS: Final = Need("events.k8s.io", "events", ("create", "patch"))
_LEASES: Final = resources.LEASES.group
_BACKLOG: Final = (names.LEASE_GANG_BACKLOG,)
_REGISTERS: Final = Setting("registration", "enabled", True)
_WITHDRAWS: Final = Setting("admission", "withdraw", True)
_SETTINGS: Final = ("slo-controller-config", "koord-scheduler-config", "koord-switches")

# An agent that watches pods at the API server does not ask the kubelet for anything.
_WATCHES_PODS: Final = ("watch", "pods")

# What scores of kube-scheduler depend on besides pods and nodes.
_SCORED: Final = ("namespaces", "persistentvolumeclaims", "replicationcontrollers", "services")

NEEDS: Final = {
    "extender": (
        Need("", "pods", ("get", *WATCH)),
        Need("", "nodes", WATCH),
        Need(_SLO, "nodemetrics", WATCH),
        Need("topology.node.k8s.io", "noderesourcetopologies", WATCH),
        Need(_SCHEDULING, _NETWORKS.plural, WATCH, _NETWORK),
        *(Need(one.group, one.plural, WATCH) for one in resources.QUOTA_RESOURCES),
        Need(resources.POD_GROUPS.group, "podgroups", WATCH),
        Need(resources.NATIVE_POD_GROUPS[0].group, "podgroups", WATCH),
        Need(resources.DEVICES.group, resources.DEVICES.plural, WATCH),
        Need(resources.RESERVATIONS.group, resources.RESERVATIONS.plural, WATCH),
        *(Need("", one, WATCH) for one in _SCORED),
        Need("apps", "replicasets", WATCH),
        Need("apps", "statefulsets", WATCH),
        Need("resource.k8s.io", "deviceclasses", WATCH),
        Need("resource.k8s.io", "resourceslices", WATCH),
        Need("resource.k8s.io", "resourceclaims", WATCH),
        Need(_SCHEDULING, "reservations", ("get", "patch")),
        Need(_SCHEDULING, "reservations/status", ("patch",)),
        Need("", "pods", ("delete",)),
        Need("", "pods/binding", ("create",)),
        Need("", "pods", ("patch",)),
        Need("", "pods/eviction", ("create",)),
        Need("", "pods/status", ("patch",)),
        Need("policy", "poddisruptionbudgets", WATCH),
        Need(_SCHEDULING, "scheduleexplanations", (*WATCH, "create")),
        Need(_SCHEDULING, "scheduleexplanations/status", ("patch",)),
        _EVENTS,
        Need("", "configmaps", WATCH, _SETTINGS, own_namespace=True),
        Need("", "configmaps", WATCH, ("gpu-shared-resource-templates",), own_namespace=True),
        Need(_LEASES, "leases", ("create", "patch"), _BACKLOG, own_namespace=True),
        Need(
            "", "serviceaccounts/token", ("create",), ("koord-extender",),
            own_namespace=True, account="koord-extender",
        ),
    ),
    "webhook": (
        Need("config.koordinator.sh", "clustercolocationprofiles", WATCH),
        Need("", "namespaces", WATCH),
        Need("scheduling.k8s.io", "priorityclasses", WATCH),
        *(Need(one.group, one.plural, WATCH) for one in resources.QUOTA_RESOURCES),
        *(
            Need(
                one.group, one.plural, ("get", "patch"),
                setting=Setting("quota", "admission", "deny", by_default=False),
            )
            for one in resources.QUOTA_RESOURCES
        ),
        Need("quota.koordinator.sh", "elasticquotaprofiles", WATCH),
        Need("", "pods", ("list",)),
        Need("", "pods", ("get",), setting=_gate("BindingAdmissionWebhook", by_default=False)),
        Need("", "limitranges", WATCH),
        Need("", "resourcequotas", WATCH),
        Need("", "nodes", WATCH, setting=_gate("ConfigMapValidatingWebhook", by_default=True)),
        *(
            Need(
                _HOOKS, plural, ("get", *WATCH, "create", "patch"), ("koord-webhook",),
                setting=_REGISTERS,
            )
            for plural in _CONFIGURATIONS
        ),
        Need(
            _LEASES, "leases", WATCH, ("koordinator-manager",), own_namespace=True,
            setting=Setting("quota", "admission", "gate"),
        ),
        Need(
            _LEASES, "leases", WATCH, _BACKLOG, own_namespace=True,
            setting=Setting("gang", "admission", "gate"),
        ),
        Need("", "configmaps", WATCH, _SETTINGS[1:], own_namespace=True),
        Need(
            "", "configmaps", WATCH, _SETTINGS[:1], own_namespace=True,
            setting=_gate("NodeValidatingWebhook", by_default=False),
        ),
        Need(
            "", "configmaps", WATCH, ("pod-enhanced-validator-config",), own_namespace=True,
            setting=_gate("EnablePodEnhancedValidator", by_default=False),
        ),
        Need(
            "", "secrets", ("get", "update"), ("koord-webhook-certificates",),
            own_namespace=True, setting=_REGISTERS,
        ),
    ),
    "manager": (
        Need("", "nodes", WATCH),
        Need("", "pods", (*WATCH, "patch")),
        Need("", "pods/status", ("patch",)),
        Need("", "pods/eviction", ("create",)),
        Need("policy", "poddisruptionbudgets", WATCH),
        Need("", "pods", ("create", "delete")),
        Need("scheduling.k8s.io", "priorityclasses", (*WATCH, "create")),
        Need(_SCHEDULING, "reservations", (*WATCH, "delete")),
        Need(_SCHEDULING, "reservations/status", ("patch",)),
        Need(_SCHEDULING, _NETWORKS.plural, WATCH, _NETWORK),
        Need(_SCHEDULING, f"{_NETWORKS.plural}/status", ("patch",), _NETWORK),
        Need("", "nodes/status", ("patch",)),
        Need("scheduling.koordinator.sh", "devices", (*WATCH, "patch")),
        Need("topology.node.k8s.io", "noderesourcetopologies", (*WATCH, "patch")),
        *(
            Need(_SLO, plural, (*WATCH, "create", "patch", "delete"))
            for plural in ("nodemetrics", "nodeslos")
        ),
        *(Need(_SLO, f"{plural}/status", ("patch",)) for plural in ("nodemetrics", "nodeslos")),
        Need(_SCHEDULING, "scheduleexplanations", (*WATCH, "delete")),
        Need("quota.koordinator.sh", "elasticquotaprofiles", (*WATCH, "patch")),
        Need("quota.koordinator.sh", "elasticquotaprofiles/status", ("patch",)),
        Need("config.koordinator.sh", "clustercolocationprofiles/status", ("patch",)),
        Need("scheduling.sigs.k8s.io", "elasticquotas", (*WATCH, "create", "patch")),
        Need("scheduling.sigs.k8s.io", "podgroups", (*WATCH, "patch")),
        Need("scheduling.k8s.io", "podgroups", WATCH),
        Need("quota.koordinator.sh", "elasticquotas", (*WATCH, "patch")),
        Need("koordinator.sh", "elasticquotas", (*WATCH, "patch")),
        Need("analysis.koordinator.sh", "recommendations", WATCH),
        Need("analysis.koordinator.sh", "recommendations/status", ("patch",)),
        Need("apps", "replicasets", WATCH),
        Need("batch", "jobs", WATCH),
        Need("config.koordinator.sh", "clustercolocationprofiles", WATCH),
        Need("", "namespaces", WATCH),
        *(Need(_HOOKS, plural, WATCH, ("koord-webhook",)) for plural in _CONFIGURATIONS),
        *(
            Need(_HOOKS, plural, ("patch",), ("koord-webhook",), setting=_WITHDRAWS)
            for plural in _CONFIGURATIONS
        ),
        _EVENTS,
        Need("", "configmaps", WATCH, _SETTINGS, own_namespace=True),
        Need(
            "", "configmaps", ("get", "create", "patch"), (names.CONFIG_MAP_REPORT,),
            own_namespace=True,
        ),
        Need(
            _LEASES, "leases", ("get", "update"), ("koordinator-manager",),
            own_namespace=True,
        ),
        Need(_LEASES, "leases", ("create",), own_namespace=True),
    ),
    "agent": (
        Need("", "nodes", (*WATCH, "patch")),
        Need("events.k8s.io", "events", ("create", "patch")),
        *(Need(_SLO, plural, WATCH) for plural in ("nodemetrics", "nodeslos")),
        *(Need(_SLO, f"{plural}/status", ("patch",)) for plural in ("nodemetrics", "nodeslos")),
        Need("topology.node.k8s.io", "noderesourcetopologies", ("get", "create", "update")),
        Need("", "nodes/pods|nodes/proxy", ("get",), unless=_WATCHES_PODS),
        Need("", "nodes/configz|nodes/proxy", ("get",), unless=_WATCHES_PODS),
        Need("", "pods", ("list",), setting=Setting("kubelet", "fallBack", True)),
        Need("", "configmaps", WATCH, ("koord-switches",), own_namespace=True),
        Need("apps", "daemonsets", ("get",), ("koord-agent",), own_namespace=True),
    ),
    "descheduler": (
        *(Need("", one, WATCH) for one in ("namespaces", "nodes", "replicationcontrollers")),
        Need("", "pods", ("get", *WATCH, "patch")),
        Need("", "pods/eviction", ("create",)),
        Need(_SLO, "nodemetrics", WATCH),
        *(Need("apps", one, WATCH) for one in ("deployments", "replicasets", "statefulsets")),
        *(Need("apps.kruise.io", one, WATCH) for one in ("clonesets", "statefulsets")),
        Need("policy", "poddisruptionbudgets", WATCH),
        Need("scheduling.k8s.io", "priorityclasses", WATCH),
        Need(resources.POD_GROUPS.group, "podgroups", WATCH),
        Need(resources.NATIVE_POD_GROUPS[0].group, "podgroups", WATCH),
        Need("topology.node.k8s.io", "noderesourcetopologies", WATCH),
        Need(resources.DEVICES.group, resources.DEVICES.plural, WATCH),
        Need(_SCHEDULING, _NETWORKS.plural, WATCH, _NETWORK),
        *(Need(one.group, one.plural, WATCH) for one in resources.QUOTA_RESOURCES),
        *(Need("resource.k8s.io", one, WATCH) for one in ("resourceslices", "resourceclaims")),
        *(
            Need(_SCHEDULING, one, ("get", *WATCH, "create", "patch", "delete"))
            for one in ("podmigrationjobs", "reservations")
        ),
        Need(_SCHEDULING, "podmigrationjobs/status", ("patch",)),
        _EVENTS,
        Need("", "configmaps", WATCH, _SETTINGS, own_namespace=True),
        Need("", "configmaps", WATCH, ("gpu-shared-resource-templates",), own_namespace=True),
        Need(
            "", "configmaps", ("get", "create", "patch"), (names.CONFIG_MAP_DESCHEDULER_MEMORY,),
            own_namespace=True,
        ),
        Need(_LEASES, "leases", ("get", "update"), ("koord-descheduler",), own_namespace=True),
        Need(_LEASES, "leases", ("create",), own_namespace=True),
    ),
    "device-daemon": (Need("", "nodes", ("patch",)),),
}  # fmt: skip
"""What the role of each process has to contain."""

ACCOUNTS: Final = {
    "koord-scheduler": "extender",
    "koord-extender": "extender",
    "koord-webhook": "webhook",
    "koord-manager": "manager",
    "koord-agent": "agent",
    "koord-descheduler": "descheduler",
    "koord-device-daemon": "device-daemon",
}
"""ServiceAccounts and the process that uses each."""

# Where it is absent, a device daemon labels no node and makes no request.
_NODE_NAME: Final = "KOORD_DEVICE_DAEMON_NODE_NAME"

READS: Final = (
    resources.CRDS, resources.DEPLOYMENTS, resources.DAEMON_SETS, resources.PODS, resources.NODES,
    resources.NODE_METRICS, resources.NODE_SLOS, resources.CONFIG_MAPS, resources.LEASES,
    resources.ENDPOINT_SLICES, resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS,
    resources.NAMESPACES, resources.COLOCATION_PROFILES, resources.RESOURCE_QUOTAS,
    resources.LIMIT_RANGES, *resources.QUOTA_RESOURCES,
    resources.DEVICES, resources.RESOURCE_SLICES,
)  # fmt: skip
"""What a checkup lists."""


def processes(
    accounts: Sequence[str], daemon_sets: Sequence[facts.Raw]
) -> Iterator[tuple[str, str]]:
    """Return those of our accounts that are there and in use, each with its process."""
    for account, process in ACCOUNTS.items():
        if account not in accounts:
            continue
        if process != "device-daemon" or any(map(_labels_its_node, daemon_sets)):
            yield account, process


def _labels_its_node(daemon_set: facts.Raw) -> bool:
    return any(
        variable.get("name") == _NODE_NAME
        for container in facts.containers(daemon_set)
        for variable in facts.stated(container, "env")
    )


def asked(process: str, settings: facts.Raw, account: str = "") -> Iterator[tuple[Need, str, str]]:
    """Return each question about a process: the need, the verb and the name of the object.

    `settings` are those of the process.
    """
    for need in NEEDS[process]:
        if need.setting is not None and not need.setting.holds(settings):
            continue
        if need.account not in ("", account):
            continue
        for verb in need.verbs:
            for name in need.names or ("",):
                yield need, verb, name


def run(known: facts.Facts) -> Iterator[findings.Finding]:
    """Say for each subject what it may not do."""
    for subject, lacking in _lacking(facts.given(known.service_access)).items():
        yield LACKING.found(f"{subject} may not {findings.some(lacking, 4)}", subject)
    for subject, lacking in _lacking(facts.given(known.own_access)).items():
        yield PERSON.found(f"{subject} may not {findings.some(lacking, 4)}")


def _lacking(asked_for: Sequence[facts.Access]) -> dict[str, list[str]]:
    lacking: dict[str, list[str]] = {}
    for access in asked_for:
        if not access.allowed:
            where = f" in {access.namespace}" if access.namespace else ""
            lacking.setdefault(access.subject, []).append(f"{access.verb} {access.resource}{where}")
    return lacking


CHECK = findings.Check("rbac", "every process may do what it has to", TRAPS, run)
