"""Classes that run only on cpu time that nobody else wants. Shared by the two cpu policies."""

from collections.abc import Mapping

from agent import edits, roles, state, strategies
from api.koordinator.metadata import qos

_OF_GROUP: Mapping[str, qos.QoS] = {"Burstable": qos.QoS.LS, "BestEffort": qos.QoS.BE}
_NONE = strategies.Cpu()


def of_classes(picture: state.NodeState, classes: strategies.Classes) -> list[edits.Edit]:
    """Return `cpu.idle` of the Kubernetes classes whose settings ask for it by name."""
    wanted: list[edits.Edit] = []
    for name, group in picture.qos_groups.items():
        cpu = classes.cpu.get(_OF_GROUP.get(name, qos.QoS.NONE), _NONE)
        if cpu.enable and cpu.idle:
            reason = f"the {name} class runs on time that nobody else wants"
            wanted += roles.numbers(group, {edits.Role.CPU_IDLE: 1}, reason)
    return wanted
