"""Kernel settings of the whole node."""

from collections.abc import Mapping

from agent.model import cgroup_properties, edits, state, strategy_settings
from api import names
from domain import wording

_R = edits.Role


def decide(picture: state.NodeState, system: strategy_settings.System) -> edits.Decision:
    """Return the settings that were made; what the kernel would refuse is named."""
    values = wanted(picture, system)
    illegal = {
        role: value
        for role, value in values.items()
        if value is not None and not cgroup_properties.legal(role, value)
    }
    edited = list(cgroup_properties.numbers("", values, "system strategy of the NodeSLO"))
    for feature, on in sorted(system.features.items()):
        reason = "scheduler feature of the NodeSLO"
        edited.append(edits.Edit(_R.SCHED_FEATURE, feature, str(int(on)), reason))
    if not edited and not illegal:
        return edits.switched_off("no kernel setting is made")
    reason, unmet = wording.count(len(edited), "kernel setting", "kernel settings"), ""
    if illegal:
        named = ", ".join(f"{role.value} {value}" for role, value in illegal.items())
        unmet = f"outside of what the kernel takes: {named}"
        reason += f"; {unmet}"
    return edits.Decision(reason, tuple(edited), figures={"illegal": len(illegal)}, unmet=unmet)


def wanted(
    picture: state.NodeState, system: strategy_settings.System
) -> Mapping[edits.Role, int | None]:
    """Return every value, None where unknown."""
    return {
        _R.VM_MIN_FREE_KBYTES: _min_free(picture, system.min_free_factor),
        _R.VM_WATERMARK_SCALE: system.watermark_scale,
        _R.MEMCG_REAP: system.memcg_reap,
        _R.SCHED_GROUP_IDENTITY: system.group_identity,
        _R.SCHED_IDLE_SAVER: system.idle_saver,
        _R.PAGE_CACHE_LIMITS: system.page_cache_limits,
    }


def _min_free(picture: state.NodeState, factor: int | None) -> int | None:
    if factor is None or picture.node is None:
        return None
    capacity = state.core_amount(picture.node.status.capacity, names.MEMORY)
    return capacity // 1024 * factor // 10_000
