"""Which runtime hooks run at which stage, in order: the first one that wants a property gets it."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from agent.hooks import batch_resources, blkio, oom_score, resctrl
from agent.hooks.cpu import core_sched, cpu_burst, cpu_normalization, cpuset, group_identity
from agent.hooks.devices import gpu_env, rdma_devices
from agent.hooks.lifecycle import adjustment, subject

_Hooks = tuple[adjustment.Hook[Any], ...]
_Stage = subject.Stage

RUN_POD_SANDBOX: Final[_Hooks] = (
    cpuset.HOOK,
    group_identity.HOOK,
    batch_resources.HOOK,
    cpu_burst.HOOK,
    cpu_normalization.HOOK,
    blkio.HOOK,
    resctrl.HOOK,
)
CREATE_CONTAINER: Final[_Hooks] = (
    cpuset.HOOK,
    core_sched.HOOK,
    group_identity.HOOK,
    batch_resources.HOOK,
    cpu_burst.HOOK,
    cpu_normalization.HOOK,
    resctrl.HOOK,
    oom_score.HOOK,
    gpu_env.HOOK,
    rdma_devices.HOOK,
)
UPDATE_CONTAINER: Final[_Hooks] = (
    cpuset.HOOK,
    batch_resources.HOOK,
    cpu_normalization.HOOK,
)
RECONCILE: Final[_Hooks] = (
    cpuset.HOOK,
    core_sched.HOOK,
    group_identity.HOOK,
    batch_resources.HOOK,
    cpu_burst.HOOK,
    cpu_normalization.HOOK,
    blkio.HOOK,
    resctrl.HOOK,
    oom_score.HOOK,
)
STAGES: Final[Mapping[subject.Stage, _Hooks]] = MappingProxyType(
    {
        _Stage.RUN_POD_SANDBOX: RUN_POD_SANDBOX,
        _Stage.CREATE_CONTAINER: CREATE_CONTAINER,
        _Stage.UPDATE_CONTAINER: UPDATE_CONTAINER,
        _Stage.RECONCILE: RECONCILE,
    }
)


def freeze(bound: Iterable[adjustment.Bound]) -> adjustment.Rules:
    """Return the rules of all stages, of the hooks that are on."""
    by_name = {one.name: one for one in bound}
    return adjustment.Rules(
        {
            stage: tuple(by_name[hook.name] for hook in hooks if hook.name in by_name)
            for stage, hooks in STAGES.items()
        }
    )
