"""Protobuf messages of NRI (`nri.pkg.api.v1alpha1`) and the two of ttrpc that carry them. Pure.

A field is written as `name type number`; `[]` is a list, `{}` a map by string. Fields that are not
named are skipped where they are read, and never written.
"""

import enum
from collections.abc import Mapping
from typing import Any, Final

from agent.nri import protobuf

DecodeError = protobuf.DecodeError


class Event(enum.IntEnum):
    """Events of pods and containers that a plug-in subscribes to."""

    RUN_POD_SANDBOX = 1
    STOP_POD_SANDBOX = 2
    REMOVE_POD_SANDBOX = 3
    CREATE_CONTAINER = 4
    POST_CREATE_CONTAINER = 5
    START_CONTAINER = 6
    POST_START_CONTAINER = 7
    UPDATE_CONTAINER = 8
    POST_UPDATE_CONTAINER = 9
    STOP_CONTAINER = 10
    REMOVE_CONTAINER = 11


def mask(*events: Event) -> int:
    """Return the subscription of events."""
    return sum(1 << (event - 1) for event in set(events))


_OPTIONAL: Final = {
    f"Optional{name}": f"value {kind} 1"
    for name, kind in (
        ("String", "string"),
        ("Int", "int64"),
        ("Int64", "int64"),
        ("UInt64", "uint64"),
        ("FileMode", "uint32"),
    )
}
SCHEMA: Final[Mapping[str, str]] = {
    "Request": "service string 1, method string 2, payload bytes 3, timeout_nano int64 4",
    "Response": "status Status 1, payload bytes 2",
    "Status": "code int32 1, message string 2",
    "Empty": "",
    "RegisterPluginRequest": "plugin_name string 1, plugin_idx string 2",
    "ConfigureRequest": (
        "config string 1, runtime_name string 2, runtime_version string 3, "
        "registration_timeout int64 4, request_timeout int64 5"
    ),
    "ConfigureResponse": "events int32 2",
    "SynchronizeRequest": "pods bytes[] 1, containers bytes[] 2, more bool 3",
    "SynchronizeResponse": "update ContainerUpdate[] 1, more bool 2",
    "CreateContainerRequest": "pod PodSandbox 1, container Container 2",
    "CreateContainerResponse": "adjust ContainerAdjustment 1, update ContainerUpdate[] 2",
    "UpdateContainerRequest": (
        "pod PodSandbox 1, container Container 2, linux_resources LinuxResources 3"
    ),
    "UpdateContainerResponse": "update ContainerUpdate[] 1",
    "StopContainerRequest": "pod PodSandbox 1, container Container 2",
    "StopContainerResponse": "update ContainerUpdate[] 1",
    "EventRequest": "pod PodSandbox 1, container Container 2",
    "StateChangeEvent": "event int32 1, pod PodSandbox 2, container Container 3",
    "PodSandbox": (
        "id string 1, name string 2, uid string 3, namespace string 4, labels string{} 5, "
        "annotations string{} 6, runtime_handler string 7, linux LinuxPodSandbox 8"
    ),
    "LinuxPodSandbox": "pod_resources LinuxResources 2, cgroup_parent string 3",
    "Container": (
        "id string 1, pod_sandbox_id string 2, name string 3, state int32 4, labels string{} 5, "
        "annotations string{} 6, env string[] 8, linux LinuxContainer 11, pid uint32 12"
    ),
    "LinuxContainer": (
        "resources LinuxResources 3, oom_score_adj OptionalInt 4, cgroups_path string 5"
    ),
    "LinuxDevice": (
        "path string 1, type string 2, major int64 3, minor int64 4, file_mode OptionalFileMode 5"
    ),
    "LinuxResources": (
        "memory LinuxMemory 1, cpu LinuxCPU 2, blockio_class OptionalString 4, "
        "rdt_class OptionalString 5, unified string{} 6"
    ),
    "LinuxMemory": "limit OptionalInt64 1, reservation OptionalInt64 2, swap OptionalInt64 3",
    "LinuxCPU": (
        "shares OptionalUInt64 1, quota OptionalInt64 2, period OptionalUInt64 3, "
        "cpus string 6, mems string 7"
    ),
    "Mount": "destination string 1, type string 2, source string 3, options string[] 4",
    "KeyValue": "key string 1, value string 2",
    "ContainerAdjustment": (
        "annotations string{} 2, mounts Mount[] 3, env KeyValue[] 4, "
        "linux LinuxContainerAdjustment 6"
    ),
    "LinuxContainerAdjustment": (
        "devices LinuxDevice[] 1, resources LinuxResources 2, oom_score_adj OptionalInt 4"
    ),
    "ContainerUpdate": "container_id string 1, linux LinuxContainerUpdate 2, ignore_failure bool 3",
    "LinuxContainerUpdate": "resources LinuxResources 1",
    **_OPTIONAL,
}
_CLASSES: Final = protobuf.classes(SCHEMA)


def new(kind: str, **fields: Any) -> Any:
    """Return a message of a kind."""
    return _CLASSES[kind](**fields)


def read(kind: str, data: bytes) -> Any:
    """Read a message of a kind; raises DecodeError."""
    return _CLASSES[kind].from_bytes(data)


def text(value: str) -> str:
    """Return a text of a message."""
    return value
