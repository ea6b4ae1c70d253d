"""Messages of CRI (`runtime.v1`) that are read, by the fields that hooks see. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from api.koordinator import runtime_hooks
from api.wire import protobuf_schema

SERVICE: Final = "runtime.v1.RuntimeService"
_SCHEMA: Final[Mapping[str, str]] = {
    **runtime_hooks.RESOURCES,
    "VersionRequest": "version string 1",
    "VersionResponse": (
        "version string 1, runtime_name string 2, runtime_version string 3, "
        "runtime_api_version string 4"
    ),
    "RunPodSandboxRequest": "config PodSandboxConfig 1, runtime_handler string 2",
    "RunPodSandboxResponse": "pod_sandbox_id string 1",
    "PodSandboxConfig": (
        "metadata PodSandboxMetadata 1, labels string{} 6, annotations string{} 7, "
        "linux LinuxPodSandboxConfig 8"
    ),
    "PodSandboxMetadata": "name string 1, uid string 2, namespace string 3, attempt uint32 4",
    "LinuxPodSandboxConfig": (
        "cgroup_parent string 1, overhead LinuxContainerResources 4, "
        "resources LinuxContainerResources 5"
    ),
    "CreateContainerRequest": (
        "pod_sandbox_id string 1, config ContainerConfig 2, sandbox_config PodSandboxConfig 3"
    ),
    "CreateContainerResponse": "container_id string 1",
    "ContainerConfig": (
        "metadata ContainerMetadata 1, envs KeyValue[] 6, annotations string{} 10, "
        "linux LinuxContainerConfig 15"
    ),
    "ContainerMetadata": "name string 1, attempt uint32 2",
    "KeyValue": "key string 1, value string 2",
    "LinuxContainerConfig": "resources LinuxContainerResources 1",
    "ContainerRequest": "container_id string 1",
    "SandboxRequest": "pod_sandbox_id string 1",
    "UpdateContainerResourcesRequest": (
        "container_id string 1, linux LinuxContainerResources 2, annotations string{} 4"
    ),
    "ListPodSandboxResponse": "items PodSandbox[] 1",
    "PodSandbox": (
        "id string 1, metadata PodSandboxMetadata 2, labels string{} 5, annotations string{} 6, "
        "runtime_handler string 7"
    ),
    "ListContainersResponse": "containers Container[] 1",
    "Container": (
        "id string 1, pod_sandbox_id string 2, metadata ContainerMetadata 3, annotations string{} 9"
    ),
    "PodSandboxStatusRequest": "pod_sandbox_id string 1, verbose bool 2",
    "PodSandboxStatusResponse": "info string{} 2",
    "ContainerStatusRequest": "container_id string 1, verbose bool 2",
    "ContainerStatusResponse": "status ContainerStatus 1, info string{} 2",
    "ContainerStatus": "resources ContainerResources 16",
    "ContainerResources": "linux LinuxContainerResources 1",
}
CLASSES: Final[Mapping[str, Any]] = protobuf_schema.classes("runtime.v1", _SCHEMA)


def path(method: str) -> str:
    """Return a method of the RuntimeService as gRPC names it."""
    return f"/{SERVICE}/{method}"


def read(kind: str, data: bytes) -> Any:
    """Read a message of a kind; raises protobuf_schema.DecodeError."""
    return CLASSES[kind].FromString(data)


def new(kind: str, **fields: Any) -> Any:
    """Return a message of a kind."""
    return CLASSES[kind](**fields)
