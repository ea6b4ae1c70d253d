"""Which containers may share a core: those of one group carry one cookie of the kernel."""

from agent.hooks.cpu import idle
from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import reconciliation
from agent.hooks.lifecycle import subject as subjects
from agent.model import cgroup_properties, edits, state, strategy_settings
from api import names
from api.koordinator.metadata import qos
from domain import wording

NEVER, ALONE = "none", "exclusive"
EXPELLER = "/expeller"
"""No label value and no namespace has a slash."""
CORE_FEATURE = "CORE_SCHED"
_R = edits.Role
_NONE = strategy_settings.Cpu()
_OF_GROUP = {"Burstable": qos.QoS.LS, "BestEffort": qos.QoS.BE}


def reconcile(picture: state.NodeState, classes: strategy_settings.Classes) -> edits.Decision:
    """Return the cookie of every container and which Kubernetes classes run on idle time alone."""
    if off := why_off(picture, classes):
        return edits.switched_off(off)
    wanted = _switches(picture)
    wanted += reconciliation.of_pods(picture.pods, HOOK.bind(classes)).wanted
    count = len({edit.value for edit in wanted if edit.role is _R.PROCESS_COOKIE})
    groups = wording.count(count, "group of containers shares", "groups of containers share")
    return edits.Decision(f"{groups} cores", (*wanted, *idle.of_classes(picture, classes)))


def adjust(subject: subjects.Subject, classes: strategy_settings.Classes) -> adjustments.Adjustment:
    """Return the cookie of a container or of the pause container."""
    if subject.level is subjects.Level.POD or subject.in_guest or not subject.pod.active:
        return adjustments.NOTHING
    cookie = group_of(subject.pod, classes)
    if cookie is None:
        return adjustments.NOTHING
    value = adjustments.Value(cookie, f"shares cores with {cookie}")
    return adjustments.Adjustment({_R.PROCESS_COOKIE: value})


HOOK = adjustments.Hook("CoreSched", adjust)


def why_off(picture: state.NodeState, classes: strategy_settings.Classes) -> str:
    """Say why no cookies are set, empty where they are."""
    if not classes.by_core:
        return "classes are not told apart by core scheduling"
    if not any(cpu.enable for cpu in classes.cpu.values()):
        return "no class has cpu QoS by core scheduling"
    if not picture.kernel.core_scheduling and _R.SCHED_CORE not in picture.kernel.roles:
        return "the kernel has no core scheduling (PR_SCHED_CORE)"
    return ""


def _switches(picture: state.NodeState) -> list[edits.Edit]:
    """Return the switches of a vendor's kernel; the mainline one needs none."""
    reason = "core scheduling excludes group identity"
    wanted = [
        edit
        for role, value in ((_R.SCHED_GROUP_IDENTITY, 0), (_R.SCHED_CORE, 1))
        if role in picture.kernel.roles
        for edit in cgroup_properties.numbers("", {role: value}, reason)
    ]
    if _R.SCHED_CORE not in picture.kernel.roles and _R.SCHED_FEATURE in picture.kernel.roles:
        # A kernel that does not know the feature has nothing to switch, and is left alone.
        wanted.append(edits.Edit(_R.SCHED_FEATURE, CORE_FEATURE, "1", reason))
    return wanted


def group_of(pod: state.PodState, classes: strategy_settings.Classes) -> str | None:
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


def _settings(pod: state.PodState, classes: strategy_settings.Classes) -> strategy_settings.Cpu:
    if pod.qos is not qos.QoS.NONE:
        return classes.cpu.get(strategy_settings.OWN_CLASS[pod.qos], _NONE)
    grouped = _OF_GROUP.get(pod.kubernetes_qos)
    if grouped is not None:
        return classes.cpu.get(grouped, _NONE)
    first = classes.cpu.get(qos.QoS.LSR, _NONE)
    return first if first.enable else classes.cpu.get(qos.QoS.LS, _NONE)
