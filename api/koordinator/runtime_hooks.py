"""The hook API `runtime.v1alpha1`, by which a CRI proxy asks hook servers about containers.

Every map is from string to string; memory is in bytes, CPU periods and quotas in microseconds.
"""

import enum
from collections.abc import Mapping
from typing import Any, Final

from api.wire import protobuf_schema

PACKAGE: Final = "runtime.v1alpha1"
SERVICE: Final = f"{PACKAGE}.RuntimeHookService"


class Stage(enum.StrEnum):
    """Moments of a pod's or container's life, as registration files name them."""

    PRE_RUN_POD_SANDBOX = "PreRunPodSandbox"
    POST_STOP_POD_SANDBOX = "PostStopPodSandbox"
    PRE_CREATE_CONTAINER = "PreCreateContainer"
    PRE_START_CONTAINER = "PreStartContainer"
    POST_START_CONTAINER = "PostStartContainer"
    PRE_UPDATE_CONTAINER_RESOURCES = "PreUpdateContainerResources"
    POST_STOP_CONTAINER = "PostStopContainer"

    @property
    def of_pod(self) -> bool:
        """Whether the stage is one of a pod's sandbox."""
        return self in (Stage.PRE_RUN_POD_SANDBOX, Stage.POST_STOP_POD_SANDBOX)

    @property
    def path(self) -> str:
        """The method of gRPC that is called at this stage."""
        return f"/{SERVICE}/{self.value}Hook"

    @property
    def request(self) -> str:
        """The message that is sent."""
        return "PodSandboxHookRequest" if self.of_pod else "ContainerResourceHookRequest"

    @property
    def response(self) -> str:
        """The message that is answered."""
        return "PodSandboxHookResponse" if self.of_pod else "ContainerResourceHookResponse"


RESOURCES: Final[Mapping[str, str]] = {
    "LinuxContainerResources": (
        "cpu_period int64 1, cpu_quota int64 2, cpu_shares int64 3, memory_limit_in_bytes int64 4, "
        "oom_score_adj int64 5, cpuset_cpus string 6, cpuset_mems string 7, "
        "hugepage_limits HugepageLimit[] 8, unified string{} 9, memory_swap_limit_in_bytes int64 10"
    ),
    "HugepageLimit": "page_size string 1, limit uint64 2",
}
"""Resources of a container, by the same numbers here and in CRI."""
_SCHEMA: Final[Mapping[str, str]] = {
    **RESOURCES,
    "PodSandboxMetadata": "name string 1, uid string 2, namespace string 3, attempt uint32 4",
    "PodSandboxHookRequest": (
        "pod_meta PodSandboxMetadata 1, runtime_handler string 2, labels string{} 3, "
        "annotations string{} 4, cgroup_parent string 5, overhead LinuxContainerResources 6, "
        "resources LinuxContainerResources 7"
    ),
    "PodSandboxHookResponse": (
        "labels string{} 1, annotations string{} 2, cgroup_parent string 3, "
        "resources LinuxContainerResources 4"
    ),
    "ContainerMetadata": "name string 1, attempt uint32 2, id string 3",
    "ContainerResourceHookRequest": (
        "pod_meta PodSandboxMetadata 1, container_meta ContainerMetadata 2, "
        "container_annotations string{} 3, container_resources LinuxContainerResources 4, "
        "pod_resources LinuxContainerResources 5, pod_annotations string{} 6, "
        "pod_labels string{} 7, pod_cgroup_parent string 8, container_envs string{} 9"
    ),
    "ContainerResourceHookResponse": (
        "container_annotations string{} 1, container_resources LinuxContainerResources 2, "
        "pod_cgroup_parent string 3, container_envs string{} 4"
    ),
}
CLASSES: Final[Mapping[str, Any]] = protobuf_schema.classes(PACKAGE, _SCHEMA)


def new(kind: str, **fields: Any) -> Any:
    """Return a message of a kind."""
    return CLASSES[kind](**fields)
