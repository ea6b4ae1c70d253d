"""Which containers the kernel kills first when memory runs out, as their pods ask for."""

from collections.abc import Mapping

import msgspec

from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import reconciliation
from agent.hooks.lifecycle import subject as subjects
from agent.model import annotations, cgroup_properties, edits, state, strategy_settings
from api import names
from domain import wording

_LONGEST = 16
_NODE_CRITICAL = "system-node-critical"
GUARANTEED, HIGHEST = -997, 1000


def of_container(written_on: Mapping[str, str], container: str) -> int | None:
    """Return the score of a container, None where nothing legal is asked for."""
    written = written_on.get(names.ANNOTATION_OOM_SCORE_ADJ_SPEC)
    if written is not None:
        spec = _REMEMBERED.if_readable(written)
        if spec is None:
            return None
        if container in spec:
            return _legal(spec[container])
    single = written_on.get(names.ANNOTATION_OOM_SCORE_ADJ)
    # Longer texts are no legal score, and Python refuses to read very long ones at all.
    if single is None or len(single) > _LONGEST:
        return None
    try:
        return _legal(int(single))
    except ValueError:
        return None


def _legal(value: int) -> int | None:
    return value if cgroup_properties.legal(edits.Role.PROCESS_OOM_SCORE, value) else None


_REMEMBERED = annotations.Reader(
    names.ANNOTATION_OOM_SCORE_ADJ_SPEC, dict[str, annotations.Int64], dict
)


def by_kubelet(pod: state.PodState, container: state.ContainerState, capacity: int) -> int:
    """Return the score that a kubelet gives a container."""
    if pod.pod.spec.priority_class_name == _NODE_CRITICAL or pod.kubernetes_qos == "Guaranteed":
        return GUARANTEED
    if pod.kubernetes_qos == state.BEST_EFFORT or capacity <= 0:
        return HIGHEST
    asked = state.core_amount(container.container.resources.requests, names.MEMORY)
    score = HIGHEST - HIGHEST * asked // capacity
    return min(max(score, HIGHEST + GUARANTEED), HIGHEST - 1)


_ANYTHING = strategy_settings.Overrides()


def reconcile(
    picture: state.NodeState, most: strategy_settings.Overrides = _ANYTHING
) -> edits.Decision:
    """Return the score of every container that asks for one.

    Below what the kubelet gives it, it would be at the cost of other pods: as low as the node lets.
    """
    by = rule(picture, most)
    if by is None:
        return edits.undecided("the Node object")
    found = reconciliation.of_pods(picture.pods, HOOK.bind(by))
    wanted = tuple(found.wanted)
    ask = wording.count(len(wanted), "container asks", "containers ask")
    return edits.Decision(f"{ask} for a score", wanted)


class Rule(msgspec.Struct, frozen=True):
    """How low scores may be."""

    most: strategy_settings.Overrides = _ANYTHING
    capacity: int = 0
    """Memory of the node in bytes, 0 while it is unknown."""


def rule(picture: state.NodeState, most: strategy_settings.Overrides) -> Rule | None:
    """Return how low scores may be on a node; None while a bound needs an unread Node."""
    if picture.node is not None:
        return Rule(most, state.core_amount(picture.node.status.capacity, names.MEMORY))
    return None if most.bounded else Rule(most)


def adjust(subject: subjects.Subject, rule: Rule) -> adjustments.Adjustment:
    """Return the score of a container that asks for one."""
    container, pod = subject.container, subject.pod
    if container is None or not container.running or not pod.active or subject.in_guest:
        return adjustments.NOTHING
    score = of_container(pod.pod.metadata.annotations, container.name)
    if score is None:
        return adjustments.NOTHING
    if rule.most.bounded:
        floor, lowest = by_kubelet(pod, container, rule.capacity), rule.most.oom_score
        score = max(score, floor if lowest is None else min(floor, lowest))
    return adjustments.values({edits.Role.PROCESS_OOM_SCORE: score}, "the pod asks for this score")


HOOK = adjustments.Hook("OOMScoreAdj", adjust)
