"""Recorded cases of the node agent that we decide differently on purpose, each with its reason."""

_SHARED_WITH_EXCLUSIVE = (
    "a cpu is claimed by an exclusive pod and by a later one; the reference lets the last claim "
    "win and gives the cpu to best effort, we never hand out a cpu of an exclusive pod"
)
DIFFERENCES: dict[str, str] = {
    f"be_suppress:{line}:cpuset": _SHARED_WITH_EXCLUSIVE for line in (48, 80, 116, 206, 252, 428)
}
