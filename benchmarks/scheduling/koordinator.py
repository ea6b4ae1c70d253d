"""The profile with which Koordinator's chart 1.8.0 installs koord-scheduler; pure."""

from typing import Any

NAMESPACE = "koordinator-system"
_API_VERSION = "kubescheduler.config.k8s.io/v1"
_FIT = ("cpu", "memory", "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory")
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "NodeResourcesFit": {
        "scoringStrategy": {
            "type": "LeastAllocated",
            "resources": [{"name": name, "weight": 1} for name in _FIT],
        }
    },
    "LoadAwareScheduling": {
        "filterExpiredNodeMetrics": False,
        "nodeMetricExpirationSeconds": 300,
        "resourceWeights": {"cpu": 1, "memory": 1},
        "usageThresholds": {"cpu": 65, "memory": 95},
        "estimatedScalingFactors": {"cpu": 85, "memory": 70},
    },
    "Coscheduling": {"awareNetworkTopology": True, "enablePreemption": True},
    "ElasticQuota": {"quotaGroupNamespace": NAMESPACE},
}
_POINTS = {
    "preEnqueue": ("Coscheduling",),
    "queueSort": ("PrioritySort",),
    "preFilter": (
        *("SchedulingHint", "Coscheduling", "Reservation", "NodeNUMAResource", "DeviceShare"),
        "ElasticQuota",
    ),
    "filter": ("Reservation", "LoadAwareScheduling", "NodeNUMAResource", "DeviceShare"),
    "postFilter": ("Reservation", "Coscheduling", "ElasticQuota"),
    "preScore": ("Reservation", "Coscheduling"),
    "score": (
        *("LoadAwareScheduling", "NodeNUMAResource", "DeviceShare", "Reservation"),
        "Coscheduling",
    ),
    "reserve": (
        *("Reservation", "LoadAwareScheduling", "NodeNUMAResource", "DeviceShare"),
        *("Coscheduling", "ElasticQuota"),
    ),
    "permit": ("Coscheduling",),
    "preBind": (
        *("NodeNUMAResource", "DeviceShare", "Reservation", "Coscheduling"),
        "DefaultPreBind",
    ),
    "bind": ("Reservation", "DefaultBinder"),
    "postBind": ("Coscheduling",),
}
_REPLACED = ("queueSort", "postFilter", "bind")
"""Extension points whose in-tree plug-ins the profile switches off."""
_RESERVATION_WEIGHT = 5000


def profile(scheduler_name: str) -> dict[str, Any]:
    """Return the profile under the name that pods ask for."""
    return {
        "schedulerName": scheduler_name,
        "pluginConfig": [
            {"name": name, "args": {"apiVersion": _API_VERSION, "kind": f"{name}Args", **args}}
            for name, args in _ARGUMENTS.items()
        ],
        "plugins": {point: _plugins(point, names) for point, names in _POINTS.items()},
    }


def configuration(scheduler_name: str, queries_per_second: int) -> dict[str, Any]:
    """Return the whole configuration with the rate limit that the others have as well."""
    return {
        "apiVersion": _API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": queries_per_second, "burst": 2 * queries_per_second},
        "profiles": [profile(scheduler_name)],
    }


def _plugins(point: str, names: tuple[str, ...]) -> dict[str, Any]:
    enabled: list[dict[str, Any]] = [{"name": name} for name in names]
    if point == "score":
        for one in enabled:
            one["weight"] = _RESERVATION_WEIGHT if one["name"] == "Reservation" else 1
    switched_off = {"disabled": [{"name": "*"}]} if point in _REPLACED else {}
    return {"enabled": enabled, **switched_off}
