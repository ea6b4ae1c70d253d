"""Events about gangs: on their PodGroup, the owner of their pods, and a few of the pods. Pure."""

from collections.abc import Iterator
from typing import Final

from api import resources
from api.koordinator import event_reasons
from domain import wording
from domain.gangs import declaration
from manager.gangs import objects, quorum, restart_plan
from manager.reconcile import actions

BELOW_QUORUM: Final = "GangBelowQuorum"
QUORUM_RESTORED: Final = "GangQuorumRestored"
RESTARTED: Final = "GangRestarted"
WOULD_RESTART: Final = "WouldRestartGang"
RESTART_DELAYED: Final = "GangRestartDelayed"
RESTART_INCOMPLETE: Final = "GangRestartIncomplete"
INVALID: Final = "InvalidPodGroup"
_PODS: Final = 5
"""Pods of a gang on which an event is recorded."""
_REPAIRS: Final = {
    declaration.Repair.NONE: "",
    declaration.Repair.REPLACE: (
        "; pods that its controller creates anew are placed as members of the gang"
    ),
    declaration.Repair.RESTART: "; all of its pods are evicted so that it starts anew",
}

Steps = tuple[actions.Step, ...]


def lost(observed: objects.Observed, standing: quorum.Standing) -> Steps:
    """Return the events of a gang that has fallen below its minimum."""
    gang = observed.gang
    note = f"gang {gang.id} was complete: now {quorum.sentence(standing)}"
    return _told(observed, BELOW_QUORUM, f"{note}{_REPAIRS[gang.repair]}", warning=True)


def restored(observed: objects.Observed, standing: quorum.Standing) -> Steps:
    """Return the events of a gang that has its minimum again."""
    note = f"gang {observed.gang.id} is complete again: {quorum.sentence(standing)}"
    return _told(observed, QUORUM_RESTORED, note)


def restarted(observed: objects.Observed, restart: restart_plan.Restart) -> Steps:
    """Return the events of a gang whose pods are evicted."""
    return _told(observed, RESTARTED, _restart(observed, restart, ("is", "are")), warning=True)


def would_restart(observed: objects.Observed, restart: restart_plan.Restart) -> Steps:
    """Return the events of a gang whose pods stay because restarts are only observed."""
    return _told(observed, WOULD_RESTART, _restart(observed, restart, ("would be", "would be")))


def delayed(observed: objects.Observed, why: str) -> Steps:
    """Return the events of a gang that is not restarted yet."""
    note = f"gang {observed.gang.id} is not restarted yet: {why}"
    return _told(observed, RESTART_DELAYED, note[:1024], warning=True)


def incomplete(observed: objects.Observed, count: int) -> Steps:
    """Return the events of a gang of which a disruption budget has kept some pods."""
    note = (
        f"disruption budgets have kept {wording.count(count, 'pod', 'pods')} of gang "
        f"{observed.gang.id}: {wording.form(count, 'it runs', 'they run')} on"
    )
    return _told(observed, RESTART_INCOMPLETE, note, warning=True)


def unreadable(group: objects.Group) -> Steps:
    """Return the events of a PodGroup that cannot be read."""
    step = actions.Tell(
        resources.POD_GROUPS, group.name, group.uid, INVALID, group.fault, True, group.namespace
    )
    return (step,)


def _restart(
    observed: objects.Observed, restart: restart_plan.Restart, verbs: tuple[str, str]
) -> str:
    count, others = len(restart.pods), len(restart.gangs) - 1
    gangs = wording.count(others, "other gang", "other gangs")
    group = f", together with {gangs} of its group" if others else ""
    return (
        f"gang {observed.gang.id} has lost pods and restarts{group}: "
        f"{wording.count(count, 'pod', 'pods')} {wording.form(count, *verbs)} evicted"
    )


def _told(
    observed: objects.Observed, reason: event_reasons.Reason, note: str, *, warning: bool = False
) -> Steps:
    return tuple(
        actions.Tell(resource, name, uid, reason, note, warning, observed.gang.namespace)
        for resource, name, uid in _about(observed)
    )


def _about(observed: objects.Observed) -> Iterator[tuple[resources.Resource, str, str]]:
    group = observed.group
    if group is not None:
        yield group.resource, group.name, group.uid
    for owner in observed.members[0].owners[:1] if observed.members else ():
        named, _, version = owner.api_version.rpartition("/")
        plural = f"{owner.kind.lower()}s"
        kind = resources.Resource(named, version, plural, owner.kind, True)
        yield kind, owner.name, owner.uid
    for pod in quorum.living(observed.members)[:_PODS]:
        yield resources.PODS, pod.name, pod.uid
