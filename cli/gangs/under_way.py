"""Plans of members without gates, on which nothing is written before they are bound. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from api.kubernetes import core
from domain.gangs import plan_record, sentences

_LONGEST: Final = 60.0
"""Seconds after which a complete gang of which nothing is heard does not count as planned."""


def are_being_bound(waiting: Sequence[core.Pod], seconds: float) -> bool:
    """Whether the members of a gang that wait have a plan; it has been complete for so long.

    Within a second of that the extender says so on them if they have none.
    """
    return bool(waiting) and seconds < _LONGEST and all(map(_is_let_in, waiting))


def _is_let_in(pod: core.Pod) -> bool:
    """Whether kube-scheduler may place a pod, and has not refused it but for want of a plan."""
    if pod.spec.scheduling_gates:
        return False
    said = pod.status.condition("PodScheduled")
    return said is None or said.status != "False" or sentences.is_about_no_plan(said.message)


def listed(
    records: Iterable[plan_record.Record | None], now: float
) -> dict[str, plan_record.Record]:
    """Return the plan of each member, by digest, that records on bound ones list and that lasts."""
    lasting = [one for one in records if one is not None and one.until > now]
    return {digest: one for one in lasting for digest in one.members}
