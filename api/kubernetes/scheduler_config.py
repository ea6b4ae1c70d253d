"""The configuration that makes an unmodified kube-scheduler call the extender; pure."""

import dataclasses
from typing import Any

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
STOCK_PROFILE = "default-scheduler"
PROFILE = "koord-scheduler"
"""The scheduler that pods of colocation manifests name."""

# Defaults of the stock scheduler. A point of the extender counts ten times, so they do as well.
STOCK_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    # Scores since 1.36; older releases take the plug-in as well and ignore its weight.
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
NOT_SCORING = frozenset(
    {
        *("SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName", "NodePorts"),
        *("VolumeRestrictions", "NodeVolumeLimits", "EBSLimits", "GCEPDLimits", "AzureDiskLimits"),
        *("VolumeZone", "DefaultPreemption", "DefaultBinder", "GangScheduling"),
        "NodeDeclaredFeatures",
    }
)
"""In-tree plug-ins that may be enabled and have no score to weigh."""
SCALE = 10


@dataclasses.dataclass(frozen=True, slots=True)
class ClientTls:
    """How the scheduler proves who it is to the extender, and whom it trusts."""

    ca_file: str
    cert_file: str = ""
    key_file: str = ""
    server_name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Lease:
    """Where the schedulers of one kind agree on who works; empty is kube-system/kube-scheduler."""

    namespace: str = ""
    name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What differs between installations of the scheduler configuration."""

    extender_url: str
    scheduler_names: tuple[str, ...] = ("default-scheduler",)
    filter_timeout_seconds: int = 2
    bind_timeout_seconds: int = 30
    max_backoff_seconds: int = 2
    queries_per_second: int = 500
    burst: int = 0
    """0 is twice the queries per second."""
    percentage_of_nodes_to_score: int = 0
    kubeconfig: str = ""
    leader_elect: bool = False
    lease: Lease = Lease()
    tls: ClientTls | None = None


def render(options: Options) -> dict[str, Any]:
    """Return the KubeSchedulerConfiguration; without an extender URL it is the stock one."""
    profiles = [
        {"schedulerName": name, "plugins": {"multiPoint": {"enabled": _weights()}}}
        for name in options.scheduler_names
    ]
    config: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "leaderElection": leadership(options.leader_elect, options.lease),
        "clientConnection": {
            "kubeconfig": options.kubeconfig,
            "qps": options.queries_per_second,
            "burst": options.burst or 2 * options.queries_per_second,
        },
        "podMaxBackoffSeconds": options.max_backoff_seconds,
        "profiles": profiles,
    }
    if options.percentage_of_nodes_to_score:
        config["percentageOfNodesToScore"] = options.percentage_of_nodes_to_score
    if options.extender_url:
        config["extenders"] = extenders(options)
    return config


def leadership(elect: bool, lease: Lease) -> dict[str, Any]:
    """Return the part that says who works when several schedulers run."""
    named = {"resourceName": lease.name, "resourceNamespace": lease.namespace}
    return {"leaderElect": elect, **{key: value for key, value in named.items() if value}}


def extenders(options: Options) -> list[dict[str, Any]]:
    """Return the two entries by which the extender is called."""
    return [_deciding(options), _binding(options)]


def _weights() -> list[dict[str, Any]]:
    return [{"name": name, "weight": weight * SCALE} for name, weight in STOCK_WEIGHTS.items()]


def _deciding(options: Options) -> dict[str, Any]:
    """The entry that is called inside the scheduling loop: short, and never skipped silently."""
    return {
        **_endpoint(options),
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "weight": 1,
        "httpTimeout": f"{options.filter_timeout_seconds}s",
    }


def _binding(options: Options) -> dict[str, Any]:
    """The entry that may hold a bind open; ignoring it would bind without our annotations."""
    return {
        **_endpoint(options),
        "bindVerb": "bind",
        "httpTimeout": f"{options.bind_timeout_seconds}s",
    }


def _endpoint(options: Options) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "urlPrefix": options.extender_url.rstrip("/"),
        "nodeCacheCapable": True,
        "ignorable": False,
    }
    if options.tls is not None:
        entry["enableHTTPS"] = True
        material = {
            "caFile": options.tls.ca_file,
            "certFile": options.tls.cert_file,
            "keyFile": options.tls.key_file,
            "serverName": options.tls.server_name,
        }
        entry["tlsConfig"] = {key: value for key, value in material.items() if value}
    return entry
