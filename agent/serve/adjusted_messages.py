"""Adjustments of runtime hooks as messages of the Node Resource Interface. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from agent.hooks.lifecycle import adjustment
from agent.model import cgroup_properties, edits, state
from agent.nri import messages
from agent.serve import snapshots

_R = edits.Role
DELIVERED: Final = frozenset(
    {
        *(_R.CPUSET, _R.CPU_QUOTA, _R.CPU_SHARES, _R.CPU_BURST, _R.MEMORY_LIMIT),
        *(_R.PROCESS_OOM_SCORE, _R.PROCESS_RESCTRL),
    }
)
"""Roles that a runtime can set; reconciliation sets the others once the container exists."""
BURST_FILE: Final = "cpu.max.burst"
Values = Mapping[edits.Role, adjustment.Value]


def deliverable(
    wanted: Values, pod: state.PodState, now: snapshots.Snapshot, quota_us: int | None
) -> dict[edits.Role, adjustment.Value]:
    """Return the values that a runtime can set without a container that fails to start.

    `quota_us` is the CFS quota that was requested. The cgroup of best-effort pods may be confined
    to fewer CPUs at any moment, and a burst above the quota is refused by the kernel.
    """
    found = {role: one for role, one in wanted.items() if role in DELIVERED and one.text}
    if pod.kubernetes_qos == state.BEST_EFFORT:
        found.pop(_R.CPUSET, None)
    group = found.get(_R.PROCESS_RESCTRL)
    if group is not None and group.text not in now.resctrl_groups:
        del found[_R.PROCESS_RESCTRL]
    burst = found.pop(_R.CPU_BURST, None)
    if burst is not None and now.cgroup_version == 2 and _R.CPU_BURST in now.roles:
        quota = found.get(_R.CPU_QUOTA)
        most = int(quota.text) if quota is not None else quota_us
        text = burst.text if most is None or most <= 0 else str(min(int(burst.text), most))
        found[_R.CPU_BURST] = adjustment.Value(text, burst.reason)
    return found


def adjusted(found: adjustment.Adjustment, values: Values) -> Any:
    """Return the ContainerAdjustment of a new container, None where nothing is wanted.

    `values` are those of the adjustment that a runtime can set.
    """
    made = messages.new("ContainerAdjustment")
    for key, value in found.environment.items():
        made.env.add(key=key, value=value)
    for inside, outside in found.mounts.items():
        made.mounts.add(destination=inside, source=outside, type="bind", options=["rbind"])
    for device in found.devices:
        added = made.linux.devices.add(
            path=device.path, type="c", major=device.major, minor=device.minor
        )
        added.file_mode.value = device.permissions
    limits = resources(values)
    if limits is not None:
        made.linux.resources.copy_from(limits)
    score = values.get(_R.PROCESS_OOM_SCORE)
    if score is not None:
        made.linux.oom_score_adj.value = int(score.text)
    return made if made.byte_size() else None


def resources(values: Values) -> Any:
    """Return the LinuxResources of values, None where none of them is one of these."""
    made = messages.new("LinuxResources")
    texts = {role: one.text for role, one in values.items()}
    if _R.CPUSET in texts:
        made.cpu.cpus = texts[_R.CPUSET]
    if _R.CPU_QUOTA in texts:
        made.cpu.quota.value = int(texts[_R.CPU_QUOTA])
        made.cpu.period.value = cgroup_properties.PERIOD_US
    if _R.CPU_SHARES in texts:
        made.cpu.shares.value = int(texts[_R.CPU_SHARES])
    if _R.MEMORY_LIMIT in texts:
        made.memory.limit.value = int(texts[_R.MEMORY_LIMIT])
    if _R.CPU_BURST in texts:
        made.unified[BURST_FILE] = texts[_R.CPU_BURST]
    if _R.PROCESS_RESCTRL in texts:
        made.rdt_class.value = texts[_R.PROCESS_RESCTRL]
    return made if made.byte_size() else None


def requested(asked: Any, oom_score_adj: Any = None) -> dict[edits.Role, str]:
    """Return what LinuxResources ask for, by role and as an edit has it; absent what they do not.

    Where nothing is requested, 0 stands for no limit of CPU time or memory.
    """
    found: dict[edits.Role, str] = {}
    cpu, memory = asked.cpu, asked.memory
    if cpu.has_field("quota") and cpu.quota.value:
        period = cpu.period.value or cgroup_properties.PERIOD_US
        quota = cpu.quota.value
        found[_R.CPU_QUOTA] = str(
            -1 if quota < 0 else quota * cgroup_properties.PERIOD_US // period
        )
    if cpu.has_field("shares") and cpu.shares.value:
        found[_R.CPU_SHARES] = str(cpu.shares.value)
    if memory.has_field("limit") and memory.limit.value:
        found[_R.MEMORY_LIMIT] = str(memory.limit.value)
    if cpu.cpus:
        found[_R.CPUSET] = messages.text(cpu.cpus)
    if oom_score_adj is not None:
        found[_R.PROCESS_OOM_SCORE] = str(oom_score_adj.value)
    return found
