"""Which containers the kernel kills first when memory runs out, as their pods ask for."""

from collections.abc import Mapping

from agent import annotations, edits, roles, state, strategies
from api import names

_LONGEST = 16
_NODE_CRITICAL = "system-node-critical"
GUARANTEED, HIGHEST = -997, 1000


def of_container(written_on: Mapping[str, str], container: str) -> int | None:
    """Return the score of a container, None where nothing legal is asked for."""
    written = written_on.get(names.ANNOTATION_OOM_SCORE_ADJ_SPEC)
    if written is not None:
        spec = _spec(written)
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
    return value if roles.legal(edits.Role.PROCESS_OOM_SCORE, value) else None


def _spec(written: str) -> Mapping[str, int] | None:
    try:
        return _REMEMBERED(written)
    except annotations.ReadError:
        return None


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


_ANYTHING = strategies.Overrides()


def reconcile(picture: state.NodeState, most: strategies.Overrides = _ANYTHING) -> edits.Decision:
    """Return the score of every container that asks for one.

    Below what the kubelet gives it, it would be at the cost of other pods: as low as the node lets.
    """
    if picture.node is None and most.bounded:
        return edits.undecided("the Node object")
    capacity = 0
    if picture.node is not None:
        capacity = state.core_amount(picture.node.status.capacity, names.MEMORY)
    wanted = []
    for pod in picture.pods:
        for container in pod.inside if pod.active else ():
            score = of_container(pod.pod.metadata.annotations, container.name)
            if score is not None and most.bounded:
                floor = by_kubelet(pod, container, capacity)
                score = max(score, floor if most.oom_score is None else min(floor, most.oom_score))
            if score is not None and container.group and container.running:
                wanted.append(
                    edits.Edit(
                        edits.Role.PROCESS_OOM_SCORE,
                        container.group,
                        str(score),
                        "the pod asks for this score",
                    )
                )
    return edits.Decision(f"{len(wanted)} containers ask for a score", tuple(wanted))
