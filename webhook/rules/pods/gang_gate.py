"""Let the members of a gang wait behind a scheduling gate until the whole gang has places."""

from typing import Final

from api import names
from api.kubernetes import core
from domain.gangs import declaration, plan_record
from webhook import review

_NOT_GATED: Final = (declaration.Source.NATIVE,)
"""kube-scheduler holds these members back itself, and counts none that has a gate."""
_DEFAULTS: Final = declaration.Defaults()


def gated(pod: review.Pod, picture: review.Picture) -> tuple[review.Pod, bool]:
    """Return the pod behind the gate of its gang, and whether it is placed with its gang at all.

    A pod that is placed with its gang needs no gate of its quota: the plan of the gang asks the
    quota for all members at once. A pod that names its node is never placed.

    To open a gate is one write more. Where kube-scheduler has a backlog of members anyway, those of
    a small gang are all there before the first of them is tried, and are admitted without one.
    """
    spec = review.section(pod, "spec")
    found = _gang(pod) if _is_planned(spec, picture) else None
    if found is None:
        return pod, False
    present = spec.get("schedulingGates") or []
    gate = {"name": names.GATE_GANG}
    if found.source in _NOT_GATED or not isinstance(present, list) or gate in present:
        return pod, True
    if picture.gang_backlog and _is_small(found):
        return pod, True
    return {**pod, "spec": {**spec, "schedulingGates": [*present, gate]}}, True


def _is_planned(spec: review.Pod, picture: review.Picture) -> bool:
    scheduler = spec.get("schedulerName") or names.DEFAULT_SCHEDULER
    return picture.plans_gangs and scheduler in picture.gang_schedulers and not spec.get("nodeName")


def _is_small(gang: declaration.Gang) -> bool:
    """Whether a pod itself says that its gang is small, and starts with no other one."""
    is_known = gang.initialised and not gang.source.needs_object
    return (
        is_known
        and gang.min_member <= plan_record.MOST_LISTED
        and declaration.listed(gang) == (gang.id,)
    )


def _gang(pod: review.Pod) -> declaration.Gang | None:
    metadata, group = review.section(pod, "metadata"), review.section(pod, "spec")
    native = review.section(group, "schedulingGroup").get("podGroupName")
    return declaration.of_pod(
        "",
        _texts(review.section(metadata, "labels")),
        _texts(review.section(metadata, "annotations")),
        _DEFAULTS,
        core.SchedulingGroup(pod_group_name=native) if isinstance(native, str) else None,
    )


def _texts(found: review.Pod) -> dict[str, str]:
    return {key: value for key, value in found.items() if isinstance(value, str)}
