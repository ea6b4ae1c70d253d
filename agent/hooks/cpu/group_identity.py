"""Whose cpu time the kernel favours: group identity, or the nearest that a mainline kernel has."""

from collections.abc import Mapping

import msgspec

from agent.hooks.cpu import idle
from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import reconciliation
from agent.hooks.lifecycle import subject as subjects
from agent.model import annotations, cgroup_properties, edits, state, strategy_settings
from api import names
from api.koordinator.metadata import qos
from domain import wording

LOWEST, HIGHEST = -1, 2
_NONE = strategy_settings.Cpu()


class IdentityError(adjustments.HookError):
    """An annotation that cannot be honoured; the text names it and what is wrong."""


class Rule(msgspec.Struct, frozen=True):
    """The identity of every class; zero everywhere while none is on."""

    enable: bool
    classes: Mapping[qos.QoS, int]
    """Identities of LSR, LS and BE, 0 where a class is off."""
    guaranteed: int
    """Identity of guaranteed pods without a class."""
    highest: int = HIGHEST
    """The most that a pod may ask for, beside what its class has."""

    def of_class(self, named: qos.QoS) -> int:
        """Return the identity of a labelled class or of a host application of that class."""
        return self.classes.get(strategy_settings.OWN_CLASS.get(named, named), 0)

    def of_group(self, kubernetes_qos: str) -> int:
        """Return the identity of the group of a Kubernetes class; all of them lie in one."""
        named = {"Burstable": qos.QoS.LS, "BestEffort": qos.QoS.BE}.get(kubernetes_qos)
        return 0 if named is None else self.of_class(named)


class _Override(msgspec.Struct, frozen=True, rename="camel"):
    enable: bool | None = None
    group_identity: annotations.Int64 | None = None


def rule(classes: strategy_settings.Classes, highest: int = HIGHEST) -> Rule:
    """Return the identities that a node's settings mean."""
    on = {
        name: classes.cpu.get(name, _NONE)
        for name in (qos.QoS.LSR, qos.QoS.LS, qos.QoS.BE)
        if classes.by_identity and classes.cpu.get(name, _NONE).enable
    }
    first = on.get(qos.QoS.LSR) or on.get(qos.QoS.LS)
    return Rule(
        enable=bool(on),
        classes={name: cpu.identity for name, cpu in on.items()},
        guaranteed=0 if first is None else first.identity,
        highest=highest,
    )


def of_pod(by: Rule, named: qos.QoS, kubernetes_qos: str, written_on: Mapping[str, str]) -> int:
    """Return the identity of a pod: its own where it may have one, else its class's."""
    written = written_on.get(names.ANNOTATION_CPU_QOS)
    own = _override(written) if written is not None else None
    identity = by.of_class(named)
    if named in (qos.QoS.NONE, qos.QoS.SYSTEM):
        grouped = by.of_group(kubernetes_qos)
        identity = by.guaranteed if kubernetes_qos == "Guaranteed" else grouped
    if own is None or named is not qos.QoS.LS:
        return identity
    most = max(identity, by.highest)
    if not own.enable:
        return min(0, most)
    return identity if own.group_identity is None else min(own.group_identity, most)


def _override(written: str) -> _Override:
    try:
        return _REMEMBERED(written)
    except annotations.ReadError as error:
        raise IdentityError(str(error)) from error


def _checked(own: _Override) -> _Override:
    if own.group_identity is not None and not LOWEST <= own.group_identity <= HIGHEST:
        raise ValueError(f"groupIdentity {own.group_identity} is not in {LOWEST}..{HIGHEST}")
    return own


_REMEMBERED = annotations.Reader(names.ANNOTATION_CPU_QOS, _Override, _checked)


def reconcile(
    picture: state.NodeState, classes: strategy_settings.Classes, highest: int = HIGHEST
) -> edits.Decision:
    """Return the identity of every group, or what stands for it on this kernel."""
    by = rule(classes, highest)
    if not by.enable:
        return edits.switched_off("no class has cpu QoS by group identity")
    here = on(picture, by)
    found = reconciliation.of_pods(picture.pods, HOOK.bind(here))
    wanted, problems = found.wanted, found.problems
    if here.native:
        wanted += _above(picture, by) + _unknown(picture, by)
    else:
        wanted += idle.of_classes(picture, classes) + _substitutes_of_host(picture, by)
    substitute = "the idle policy, since the kernel has no group identity"
    how = "group identity" if here.native else substitute
    reason = f"cpu QoS of {wording.count(len(picture.pods), 'pod', 'pods')} by {how}"
    if problems:
        reason += f"; left alone: {'; '.join(problems[:3])}"
    return edits.Decision(reason, tuple(wanted), figures={"problems": len(problems)})


class OnKernel(msgspec.Struct, frozen=True):
    """The rule, and whether this kernel has group identity."""

    by: Rule
    native: bool


def on(picture: state.NodeState, by: Rule) -> OnKernel:
    """Return the rule on the kernel of a node."""
    return OnKernel(by, native=edits.Role.CPU_IDENTITY in picture.kernel.roles)


def adjust(subject: subjects.Subject, rule: OnKernel) -> adjustments.Adjustment:
    """Return the identity of a cgroup, or the scheduling policy that stands for it."""
    identity, found = _of_pod(subject.pod, rule)
    if subject.in_guest:
        return adjustments.NOTHING
    if not rule.native:
        return _substitute(subject, identity)
    return found


HOOK = adjustments.Hook("GroupIdentity", adjust)


def _identity(pod: state.PodState, rule: OnKernel) -> tuple[int, adjustments.Adjustment]:
    identity = of_pod(rule.by, pod.qos, pod.kubernetes_qos, pod.pod.metadata.annotations)
    if not cgroup_properties.legal(edits.Role.CPU_IDENTITY, identity):
        return identity, adjustments.NOTHING
    reason = f"identity of {pod.effective_qos.value or 'no class'}"
    return identity, adjustments.values({edits.Role.CPU_IDENTITY: identity}, reason)


_of_pod = subjects.PerPod(_identity)


def _substitute(subject: subjects.Subject, identity: int) -> adjustments.Adjustment:
    """Run what ranks below everybody under the idle policy.

    It ranks threads within their group and lets their cpus look free to those that wake up; between
    groups the weights count that the kubelet gives its classes. `cpu.idle` would take those away,
    and make the kubelet fail to write the weights of its own groups.
    """
    if identity >= 0 or subject.container is None or not subject.container.running:
        return adjustments.NOTHING
    reason = f"identity {identity}: the idle policy stands for it on this kernel"
    return adjustments.Adjustment({edits.Role.PROCESS_POLICY: adjustments.Value("idle", reason)})


def _substitutes_of_host(picture: state.NodeState, by: Rule) -> list[edits.Edit]:
    """Run processes outside of pods that rank below everybody under the idle policy."""
    return [
        edits.Edit(edits.Role.PROCESS_POLICY, app.group, "idle", f"identity of {app.name}")
        for app in picture.host_applications
        if app.group and _of_application(app, by) < 0
    ]


def _of_application(app: state.HostApplication, by: Rule) -> int:
    return by.of_class(qos.qos_of({names.LABEL_QOS: app.qos}))


def _unknown(picture: state.NodeState, by: Rule) -> list[edits.Edit]:
    """Return the identity of cgroups without a known pod: that of the class they lie in."""
    known = {pod.group for pod in picture.pods}
    return [
        edit
        for group, kubernetes_qos in picture.pod_groups.items()
        if group not in known
        for edit in cgroup_properties.numbers(
            group,
            {edits.Role.CPU_IDENTITY: by.of_group(kubernetes_qos)},
            f"an unknown pod in the {kubernetes_qos} class",
        )
    ]


def _above(picture: state.NodeState, by: Rule) -> list[edits.Edit]:
    """Return the groups of the Kubernetes classes, and the switch of the kernel."""
    wanted: list[edits.Edit] = []
    for name, group in picture.qos_groups.items():
        values = {edits.Role.CPU_IDENTITY: by.of_group(name)}
        wanted += cgroup_properties.numbers(group, values, f"identity of the {name} class")
    for role, value in ((edits.Role.SCHED_CORE, 0), (edits.Role.SCHED_GROUP_IDENTITY, 1)):
        if role in picture.kernel.roles:
            wanted += cgroup_properties.numbers(
                "", {role: value}, "group identity excludes core scheduling"
            )
    for app in picture.host_applications:
        if app.group:
            values = {edits.Role.CPU_IDENTITY: _of_application(app, by)}
            wanted += cgroup_properties.numbers(app.group, values, f"identity of {app.name}")
    return wanted
