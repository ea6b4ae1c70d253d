"""Which containers may share a core: those of one group carry one cookie of the kernel."""

from agent import edits, roles, state, strategies
from agent.hooks import idle
from api import names
from api.koordinator.metadata import qos

NEVER, ALONE = "none", "exclusive"
EXPELLER = "/expeller"
"""No label value and no namespace has a slash."""
CORE_FEATURE = "CORE_SCHED"
_R = edits.Role
_NONE = strategies.Cpu()
_OF_GROUP = {"Burstable": qos.QoS.LS, "BestEffort": qos.QoS.BE}


def reconcile(picture: state.NodeState, classes: strategies.Classes) -> edits.Decision:
    """Return the cookie of every container and which Kubernetes classes run on idle time alone."""
    if not classes.by_core:
        return edits.switched_off("classes are not told apart by core scheduling")
    if not any(cpu.enable for cpu in classes.cpu.values()):
        return edits.switched_off("no class has cpu QoS by core scheduling")
    if not picture.kernel.core_scheduling and _R.SCHED_CORE not in picture.kernel.roles:
        return edits.switched_off("the kernel has no core scheduling (PR_SCHED_CORE)")
    wanted = _switches(picture)
    for pod in picture.pods:
        cookie = group_of(pod, classes) if pod.active else None
        if cookie is None:
            continue
        reason = f"shares cores with {cookie}"
        wanted += [
            edits.Edit(edits.Role.PROCESS_COOKIE, group, cookie, reason)
            for group in pod.inner_groups
        ]
    count = len({edit.value for edit in wanted if edit.role is _R.PROCESS_COOKIE})
    return edits.Decision(
        f"{count} groups of containers share cores", (*wanted, *idle.of_classes(picture, classes))
    )


def _switches(picture: state.NodeState) -> list[edits.Edit]:
    """Return the switches of a vendor's kernel; the mainline one needs none."""
    reason = "core scheduling excludes group identity"
    wanted = [
        edit
        for role, value in ((_R.SCHED_GROUP_IDENTITY, 0), (_R.SCHED_CORE, 1))
        if role in picture.kernel.roles
        for edit in roles.numbers("", {role: value}, reason)
    ]
    if _R.SCHED_CORE not in picture.kernel.roles and _R.SCHED_FEATURE in picture.kernel.roles:
        # A kernel that does not know the feature has nothing to switch, and is left alone.
        wanted.append(edits.Edit(_R.SCHED_FEATURE, CORE_FEATURE, "1", reason))
    return wanted


def group_of(pod: state.PodState, classes: strategies.Classes) -> str | None:
    """Return the name that all containers of a group share, None where a pod takes no part."""
    if pod.qos is qos.QoS.SYSTEM:
        return None
    labels = pod.pod.metadata.labels
    policy = labels.get(names.LABEL_CORE_SCHED_POLICY, "")
    cpu = _settings(pod, classes)
    if not cpu.enable or policy == NEVER:
        return None
    named = labels.get(names.LABEL_CORE_SCHED_GROUP, "")
    # Names are chosen by tenants, and strangers may choose the same one: they count within a
    # namespace. The prefix keeps a group without a name apart from the default cookie.
    inside = f"{pod.pod.metadata.namespace}/{named}" if named else ""
    group = f"pod/{pod.pod.metadata.uid}" if policy == ALONE else f"group/{inside}"
    return group + EXPELLER if cpu.expeller else group


def _settings(pod: state.PodState, classes: strategies.Classes) -> strategies.Cpu:
    if pod.qos is not qos.QoS.NONE:
        return classes.cpu.get(strategies.OWN_CLASS[pod.qos], _NONE)
    grouped = _OF_GROUP.get(pod.kubernetes_qos)
    if grouped is not None:
        return classes.cpu.get(grouped, _NONE)
    first = classes.cpu.get(qos.QoS.LSR, _NONE)
    return first if first.enable else classes.cpu.get(qos.QoS.LS, _NONE)
