"""Remove pods that are too old, or that are in a state in which they help nobody."""

from collections.abc import Iterator
from typing import Final

from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates
from descheduler.framework.pods import pod_states
from descheduler.model import podinfo

NAME: Final = "PodLifeTime"


class PodLifeTime:
    """A pod has to satisfy every criterion that is given; of each, one of its values is enough."""

    name = NAME

    def __init__(self, arguments: compliance.PodLifeTimeArgs) -> None:
        self._arguments = arguments
        self._kinds = pod_states.kinds(
            arguments.including_init_containers, arguments.including_ephemeral_containers
        )
        self._exited = pod_states.kinds(arguments.including_init_containers)

    def deschedule(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest pods, the oldest first."""
        del memory
        now = view.picture.now
        found = [
            pod for _, pod in candidates.present(view, self._arguments) if self._satisfies(pod, now)
        ]
        found.sort(key=pod_states.oldest_first)
        return candidates.in_turn(view, (self._suggestion(pod, now) for pod in found))

    def _satisfies(self, pod: podinfo.Pod, now: float) -> bool:
        given = self._arguments
        longest, states, codes = given.max_pod_life_time_seconds, given.states, given.exit_codes
        return (
            (longest is None or pod_states.age(pod, now) > longest)
            and (not states or not pod_states.states(pod, self._kinds).isdisjoint(states))
            and (not codes or not pod_states.exit_codes(pod, self._exited).isdisjoint(codes))
            and (not given.conditions or self._has_condition(pod, now))
            and self._owner_counts(pod)
        )

    def _has_condition(self, pod: podinfo.Pod, now: float) -> bool:
        return any(
            _matches(wanted, found, now)
            for wanted in self._arguments.conditions
            for found in pod.conditions
        )

    def _owner_counts(self, pod: podinfo.Pod) -> bool:
        kinds = self._arguments.owner_kinds
        if kinds is None:
            return True
        owners = {owner.kind for owner in pod.owners}
        if kinds.include:
            return not owners.isdisjoint(kinds.include)
        return owners.isdisjoint(kinds.exclude)

    def _suggestion(self, pod: podinfo.Pod, now: float) -> protocols.Suggestion:
        reason = "; ".join(self._why(pod, now))
        return protocols.Suggestion(pod, NAME, reason, protocols.Purpose.REMOVE)

    def _why(self, pod: podinfo.Pod, now: float) -> Iterator[str]:
        given = self._arguments
        if given.max_pod_life_time_seconds is not None:
            age = pod_states.age(pod, now)
            yield f"age {age:.0f}s is more than {given.max_pod_life_time_seconds}s"
        if given.states:
            there = pod_states.states(pod, self._kinds) & set(given.states)
            yield f"state {', '.join(sorted(there))}"
        if given.exit_codes:
            codes = pod_states.exit_codes(pod, self._exited) & set(given.exit_codes)
            yield f"exit code {', '.join(map(str, sorted(codes)))}"
        if given.conditions:
            yield "a condition that conditions names"


def _matches(wanted: compliance.ConditionFilter, found: podinfo.Condition, now: float) -> bool:
    least = wanted.min_time_since_last_transition_seconds
    return (
        wanted.type in ("", found.kind)
        and wanted.status in ("", found.status)
        and wanted.reason in ("", found.reason)
        and (least is None or (found.since >= 0 and now - found.since >= least))
    )
