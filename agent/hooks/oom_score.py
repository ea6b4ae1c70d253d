"""Which containers the kernel kills first when memory runs out, as their pods ask for."""

from collections.abc import Mapping

from agent import annotations, edits, roles, state
from api import names

_LONGEST = 16


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


def reconcile(picture: state.NodeState) -> edits.Decision:
    """Return the score of every container that asks for one."""
    wanted = []
    for pod in picture.pods:
        for container in pod.inside if pod.active else ():
            score = of_container(pod.pod.metadata.annotations, container.name)
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
