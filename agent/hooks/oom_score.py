"""Which containers the kernel kills first when memory runs out, as their pods ask for."""

import functools
from collections.abc import Mapping

import msgspec

from agent import edits, roles, state
from api import names


def of_container(annotations: Mapping[str, str], container: str) -> int | None:
    """Return the score of a container, None where nothing legal is asked for."""
    written = annotations.get(names.ANNOTATION_OOM_SCORE_ADJ_SPEC)
    if written is not None:
        spec = _spec(written)
        if spec is None:
            return None
        if container in spec:
            return _legal(spec[container])
    single = annotations.get(names.ANNOTATION_OOM_SCORE_ADJ)
    if single is None:
        return None
    try:
        return _legal(int(single))
    except ValueError:
        return None


def _legal(value: int) -> int | None:
    return value if roles.legal(edits.Role.PROCESS_OOM_SCORE, value) else None


@functools.lru_cache(maxsize=256)
def _spec(written: str) -> Mapping[str, int] | None:
    try:
        return msgspec.json.decode(written, type=dict[str, int])
    except (msgspec.MsgspecError, ValueError):
        return None


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
