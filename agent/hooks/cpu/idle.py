"""Classes that run only on cpu time that no other class wants. Shared by the two cpu policies."""

from collections.abc import Mapping

from agent.model import cgroup_properties, edits, state, strategy_settings
from api.koordinator.metadata import qos

_OF_GROUP: Mapping[str, qos.QoS] = {"Burstable": qos.QoS.LS, "BestEffort": qos.QoS.BE}
_NONE = strategy_settings.Cpu()


def of_classes(picture: state.NodeState, classes: strategy_settings.Classes) -> list[edits.Edit]:
    """Return `cpu.idle` of the Kubernetes classes whose settings ask for it by name."""
    wanted: list[edits.Edit] = []
    for name, group in picture.qos_groups.items():
        cpu = classes.cpu.get(_OF_GROUP.get(name, qos.QoS.NONE), _NONE)
        if cpu.enable and cpu.idle:
            reason = f"the {name} class runs on time that no other class wants"
            wanted += cgroup_properties.numbers(group, {edits.Role.CPU_IDLE: 1}, reason)
    return wanted
