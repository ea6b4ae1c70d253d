"""What keeps pods where they are in every profile, whichever filter plug-ins it has. Pure."""

import collections
from collections.abc import Mapping
from typing import Final

from api import names
from descheduler.framework import protocols
from descheduler.framework.filtering import pod_traits, quota_lines
from descheduler.framework.planning import history, resting
from descheduler.model import exemption, objects, picture, podinfo

UNREADABLE: Final = "it cannot be read whole"
EXEMPT: Final = f"it is exempt ({names.ANNOTATION_EXEMPT})"
PROTECTED: Final = "it is marked as not preemptible"
ROLLING_OUT: Final = "its workload is rolling out a new revision"
COOL_DOWN: Final = "it replaces a pod that was moved a short time ago (coolDown)"
AGAIN: Final = "pods were moved again and again to where it is: it stays longer (coolDown)"
LOOP: Final = resting.LOOP
GANG: Final = "its gang would lose its quorum"
QUOTA_LINE: Final = "its replacement would wait for quota behind pods that wait already"

_PROTECTING: Final = (
    (names.LABEL_QUOTA_PREEMPTIBLE, "false"),
    (names.LABEL_DISABLE_PREEMPTIBLE, "true"),
)


class Safeguards:
    """Exemptions, rollouts, cool-down, gangs and quotas, as one picture has them."""

    def __init__(
        self,
        seen: picture.Picture,
        migrating: protocols.Migrating,
        moves: history.History = history.NONE,
        cool_down: float = 0.0,
        *,
        whole_gangs: bool = False,
    ) -> None:
        """With `whole_gangs` a member may leave whose gang can leave with it."""
        self._seen, self._migrating = seen, migrating
        self._whole_gangs = whole_gangs
        self._lines = resting.Lines(moves.values(), cool_down)
        self._gangs = Gangs(seen)
        self._quotas = quota_lines.QuotaLines(seen)

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return why a pod must stay, empty where it may leave."""
        if pod.flaw:
            return UNREADABLE
        controller = pod.controller
        workload = self._seen.workloads.get(controller.uid) if controller is not None else None
        if self._is_exempt(pod, workload):
            return EXEMPT
        if not pod_traits.is_forced(pod) and (reason := self._for_now(pod, workload)):
            return reason
        return GANG if pod.gang and self._breaks_gang(pod) else ""

    def varies(self, pod: podinfo.Pod) -> bool:
        """Whether pods of its workload have moved: those that came after stay for a while."""
        return bool(self._lines.moves_of(pod))

    def _breaks_gang(self, pod: podinfo.Pod) -> bool:
        moving = self._gangs.moving(pod, self._migrating)
        return (bool(moving) or not self._whole_gangs) and self._gangs.breaks(pod, moving)

    def late_refusal(self, pod: podinfo.Pod) -> str:
        """Return nothing: all is said before."""
        del pod
        return ""

    def _is_exempt(self, pod: podinfo.Pod, workload: objects.Workload | None) -> bool:
        if exemption.is_exempt(pod.annotations) or (workload is not None and workload.is_exempt):
            return True
        namespaces = self._seen.exempt_namespaces
        return bool(namespaces) and pod.namespace in namespaces

    def _for_now(self, pod: podinfo.Pod, workload: objects.Workload | None) -> str:
        if pod.labels:
            for label, value in _PROTECTING:
                if pod.labels.get(label) == value:
                    return PROTECTED
        if self._quotas.waits(pod):
            return QUOTA_LINE
        if workload is not None and workload.is_rolling_out:
            return ROLLING_OUT
        if self._lines.is_in_a_loop(pod):
            return LOOP
        left, turns = self._lines.rest(pod, self._seen.now)
        if not left:
            return ""
        return COOL_DOWN if turns == 1 else AGAIN


class Gangs:
    """Members of gangs, and how many of them may leave."""

    def __init__(self, seen: picture.Picture) -> None:
        self._seen = seen
        self._members: Mapping[str, tuple[podinfo.Pod, ...]] | None = None

    def members(self, gang: str) -> tuple[podinfo.Pod, ...]:
        """Return the members of a gang that are on a node and neither ended nor terminating."""
        if self._members is None:
            found: dict[str, list[podinfo.Pod]] = collections.defaultdict(list)
            for pod in self._seen.pods.values():
                if pod.gang and pod.node and pod.is_active:
                    found[pod.gang].append(pod)
            self._members = {name: tuple(pods) for name, pods in found.items()}
        return self._members.get(gang, ())

    def moving(self, pod: podinfo.Pod, migrating: protocols.Migrating) -> frozenset[str]:
        """Return the uids of the members of a pod's gang that are being moved."""
        return frozenset(one.uid for one in self.members(pod.gang) if migrating.holds(one))

    def breaks(self, pod: podinfo.Pod, leaving: frozenset[str]) -> bool:
        """Whether a gang without quorum would stay behind, were the pod to leave with these.

        A gang that leaves as a whole leaves none behind.
        """
        members = self.members(pod.gang)
        staying = sum(1 for one in members if one.uid != pod.uid and one.uid not in leaving)
        if not staying:
            return False
        gang = self._seen.gangs.get(pod.gang)
        return staying < (gang.min_member if gang is not None else len(members))
