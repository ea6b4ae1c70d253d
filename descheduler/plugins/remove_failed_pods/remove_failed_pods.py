"""Remove pods that have failed, so that their controllers replace them."""

from typing import Final

from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates
from descheduler.framework.pods import pod_states
from descheduler.model import podinfo

NAME: Final = "RemoveFailedPods"


class RemoveFailedPods:
    """Compares failed pods with the reasons, exit codes, owners and least age that are given."""

    name = NAME

    def __init__(self, arguments: compliance.RemoveFailedPodsArgs) -> None:
        self._arguments = arguments
        self._kinds = pod_states.kinds(arguments.including_init_containers)

    def deschedule(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest failed pods, the oldest first."""
        del memory
        found = [
            pod
            for _, pod in candidates.present(view, self._arguments)
            if pod.phase == "Failed" and self._counts(pod, view.picture.now)
        ]
        found.sort(key=pod_states.oldest_first)
        return candidates.in_turn(view, map(self._suggestion, found))

    def _counts(self, pod: podinfo.Pod, now: float) -> bool:
        given = self._arguments
        least = given.min_pod_lifetime_seconds
        if least and pod_states.age(pod, now) < least:
            return False
        if any(owner.kind in given.exclude_owner_kinds for owner in pod.owners):
            return False
        if given.reasons and pod_states.reasons(pod, self._kinds).isdisjoint(given.reasons):
            return False
        codes = pod_states.exit_codes(pod, self._kinds)
        return not given.exit_codes or not codes.isdisjoint(given.exit_codes)

    def _suggestion(self, pod: podinfo.Pod) -> protocols.Suggestion:
        said = ", ".join(sorted(pod_states.reasons(pod, self._kinds)))
        reason = f"pod has failed: {said}" if said else "pod has failed"
        return protocols.Suggestion(pod, NAME, reason, protocols.Purpose.REMOVE)
