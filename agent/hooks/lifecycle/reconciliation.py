"""The edits of pods that exist already: what a hook wants of each of their cgroups. Pure."""

from collections.abc import Iterable

import msgspec

from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import subject as subjects
from agent.model import edits, state


class Outcome(msgspec.Struct, frozen=True):
    """What one hook wants of all pods."""

    wanted: list[edits.Edit]
    problems: tuple[str, ...]
    """What pods cannot have, each with the name of its pod."""
    adjusted: int
    """Pods of which anything is wanted, whether or not their cgroups are known."""


def of_pods(pods: Iterable[state.PodState], bound: adjustments.Bound) -> Outcome:
    """Ask one hook for every cgroup of every pod; raises what the hook does not know.

    A strategy that raises is asked again without the pod at fault.
    """
    wanted: list[edits.Edit] = []
    problems: dict[str, None] = {}
    count = 0
    for pod in pods:
        touched = False
        for subject in subjects.of_pod(pod):
            found, told = adjustments.ask(bound, subject)
            for problem in told:
                if problem.unexpected is not None:
                    raise problem.unexpected
                problems[f"{pod.pod.metadata.key}: {problem.text}"] = None
            if found is not adjustments.NOTHING:
                touched = True
                wanted += edits_of(subject, found)
        count += touched
    return Outcome(wanted, tuple(problems), count)


def edits_of(subject: subjects.Subject, found: adjustments.Adjustment) -> tuple[edits.Edit, ...]:
    """Return an adjustment as edits; none of a cgroup that is not known."""
    group = subject.group
    if not group:
        return found.beside
    own = (edits.Edit(role, group, one.text, one.reason) for role, one in found.values.items())
    return (*found.beside, *own)
