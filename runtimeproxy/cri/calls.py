"""The calls of CRI that are intercepted, and the stages of hooks before and after them. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from api.koordinator import runtime_hooks
from runtimeproxy.cri import messages

_Stage = runtime_hooks.Stage


class Call(NamedTuple):
    """One method of the RuntimeService."""

    name: str
    request: str
    """The message of the request, as far as it is read."""
    before: runtime_hooks.Stage | None = None
    after: runtime_hooks.Stage | None = None


RUN_POD_SANDBOX: Final = Call("RunPodSandbox", "RunPodSandboxRequest", _Stage.PRE_RUN_POD_SANDBOX)
STOP_POD_SANDBOX: Final = Call(
    "StopPodSandbox", "SandboxRequest", after=_Stage.POST_STOP_POD_SANDBOX
)
REMOVE_POD_SANDBOX: Final = Call("RemovePodSandbox", "SandboxRequest")
CREATE_CONTAINER: Final = Call(
    "CreateContainer", "CreateContainerRequest", _Stage.PRE_CREATE_CONTAINER
)
START_CONTAINER: Final = Call(
    *("StartContainer", "ContainerRequest"),
    _Stage.PRE_START_CONTAINER,
    _Stage.POST_START_CONTAINER,
)
UPDATE_CONTAINER: Final = Call(
    *("UpdateContainerResources", "UpdateContainerResourcesRequest"),
    _Stage.PRE_UPDATE_CONTAINER_RESOURCES,
)
STOP_CONTAINER: Final = Call("StopContainer", "ContainerRequest", after=_Stage.POST_STOP_CONTAINER)
REMOVE_CONTAINER: Final = Call("RemoveContainer", "ContainerRequest")
CALLS: Final[Mapping[str, Call]] = {
    messages.path(one.name): one
    for one in (
        *(RUN_POD_SANDBOX, STOP_POD_SANDBOX, REMOVE_POD_SANDBOX),
        *(CREATE_CONTAINER, START_CONTAINER, UPDATE_CONTAINER, STOP_CONTAINER, REMOVE_CONTAINER),
    )
}
"""The intercepted methods, as gRPC names them."""
