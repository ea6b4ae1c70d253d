"""Who may leave for a pod over its quota, and whom another quota protects."""

from collections.abc import Iterator
from typing import Final

from api import names
from extender.framework import claim_index, verdicts, views
from extender.plugins.elastic_quota import tracker, uses

ENTITLED: Final = verdicts.Status("its quota uses no more than it may, and is not the preemptor's")

Group = tuple[str, str]
"""Label and namespace of a pod: together they say in which quota it counts."""


def group(claim: views.Claim) -> Group:
    """Return what says in which quota a claim counts, whatever quotas there are."""
    use = uses.waiting(claim.pod.requirements, claim.pod.namespace)
    return use.quota, use.namespace


def potential(
    state: tracker.QuotaState,
    pod: views.PodInfo,
    groups: claim_index.Groups,
    *,
    default_quota: bool,
) -> Iterator[views.Claim]:
    """Yield the claims of the quota of a pod that are not above preemption.

    `default_quota` says whether pods without a quota of their own preempt each other.
    """
    name = _quota(state, pod)
    if not name or (name == names.DEFAULT_QUOTA and not default_quota):
        return
    for key, held in groups.items():
        assert isinstance(key, tuple)
        if state.forest.name_of(*key) == name:
            # What runs on every node comes back at once: nothing would be won.
            yield from (one for one in held.values() if not one.pod.requirements.daemon)


def protects(
    state: tracker.QuotaState, pod: views.PodInfo, victim: views.Claim
) -> verdicts.Status | None:
    """Protect a pod of another quota while that quota uses no more than it may.

    That holds between quotas: what counts in none, or in the default or system quota, neither
    takes the word of a quota to preempt nor is kept by it.
    """
    own = _quota(state, pod)
    if not own or own in names.RESERVED_QUOTAS:
        return None
    other = state.forest.name_of(*group(victim))
    if not other or other == own or other in names.RESERVED_QUOTAS:
        return None
    found = state.forest.figures(other)
    if found is None:
        return None
    asked = dict(victim.pod.requirements.requests)
    over = any(
        found.used.get(name, 0) > most for name, most in found.limit.items() if name in asked
    )
    return None if over else ENTITLED


def _quota(state: tracker.QuotaState, pod: views.PodInfo) -> str:
    namespace = pod.key.partition("/")[0]
    use = uses.waiting(pod.requirements, namespace)
    return state.forest.name_of(use.quota, namespace)
