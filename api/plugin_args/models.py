"""Plug-in to the model of its arguments: one visible table."""

from collections.abc import Mapping
from typing import Any, Final

from api.plugin_args import job, node
from api.plugin_args.arguments import Arguments

LOAD_AWARE: Final = "LoadAwareScheduling"
NODE_NUMA_RESOURCE: Final = "NodeNUMAResource"
DEVICE_SHARE: Final = "DeviceShare"
RESERVATION: Final = "Reservation"
ELASTIC_QUOTA: Final = "ElasticQuota"
COSCHEDULING: Final = "Coscheduling"
NODE_RESOURCES_FIT_PLUS: Final = "NodeResourcesFitPlus"
SCARCE_RESOURCE_AVOIDANCE: Final = "ScarceResourceAvoidance"

MODELS: Final[Mapping[str, type[Arguments]]] = {
    LOAD_AWARE: node.LoadAwareSchedulingArgs,
    NODE_NUMA_RESOURCE: node.NodeNUMAResourceArgs,
    DEVICE_SHARE: node.DeviceShareArgs,
    RESERVATION: job.ReservationArgs,
    ELASTIC_QUOTA: job.ElasticQuotaArgs,
    COSCHEDULING: job.CoschedulingArgs,
    NODE_RESOURCES_FIT_PLUS: node.NodeResourcesFitPlusArgs,
    SCARCE_RESOURCE_AVOIDANCE: node.ScarceResourceAvoidanceArgs,
}
"""Plug-in to the model of its arguments."""


def effective(arguments: Arguments) -> dict[str, Any]:
    """Return every argument under its wire name, defaults included."""
    return arguments.complete().model_dump(mode="json", by_alias=True, exclude_none=True)
