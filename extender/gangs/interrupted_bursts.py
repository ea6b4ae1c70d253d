"""Bursts of Bindings, as the records on what they have bound tell of them. Pure.

What was bound alone decides: several extenders may write records on members that wait, and the last
one counts there. A member is bound with the record of the plan by which that was done.
"""

import collections
import dataclasses
from collections.abc import Iterator, Sequence

from domain.gangs import plan_record
from extender.state import records


@dataclasses.dataclass(frozen=True, slots=True)
class Burst:
    """Members that were bound by one plan, or by several that have members in common."""

    generations: frozenset[str]
    bound: frozenset[str]
    """Uids of the members that are bound."""
    listed: frozenset[str]
    """Digests of the members of which is known that they belong together, those included."""
    count: int
    """How many members the largest of these plans has, as far as that is known."""
    until: float
    """When the last of these plans was over at the latest."""

    @property
    def generation(self) -> str:
        """Return one of them for all: what completes them takes it on."""
        return min(self.generations)

    def waits_for(self, pod: records.PodRecord) -> bool:
        """Whether a member that waits was on its way with those that are bound."""
        if plan_record.digest(pod.uid) in self.listed:
            return True
        record = plan_record.read(pod.gang.plan) if pod.gang is not None else None
        return record is not None and record.origin in self.generations

    def lost(self, members: Sequence[records.PodRecord]) -> int:
        """Return how many members have left for certain.

        Where not all of them are known, one that waits may be one of them unless it was created
        after the plans were over.
        """
        if len(self.listed) >= self.count:
            return len(self.listed - {plan_record.digest(pod.uid) for pod in members})
        waiting = sum(
            not pod.node and pod.gang is not None and pod.gang.created_at <= self.until
            for pod in members
        )
        return self.count - len(self.bound) - waiting


@dataclasses.dataclass(frozen=True, slots=True)
class _Bound:
    """A member that is bound, with the record of its plan."""

    uid: str
    digest: str
    record: plan_record.Record

    @property
    def listed(self) -> Sequence[str]:
        """Return the members of which it tells, itself included."""
        return (self.digest, *self.record.members)


def bursts(members: Sequence[records.PodRecord]) -> list[Burst]:
    """Return by which bursts the members of a gang group were bound.

    Where the scheduler of another extender has taken over in the middle, members of one gang were
    bound by plans of both. A plan may then list members that the other one has bound. What is
    bound without a record of its own, one by one, belongs to the plan that lists it.
    """
    digests: dict[str, str] = {}
    by_origin: dict[str, list[_Bound]] = collections.defaultdict(list)
    origin_of: dict[str, str] = {}
    for pod in members:
        if not pod.node:
            continue
        digest = plan_record.digest(pod.uid)
        digests[digest] = pod.uid
        record = plan_record.read(pod.gang.plan) if pod.gang is not None else None
        if record is not None:
            by_origin[record.origin].append(_Bound(pod.uid, digest, record))
            origin_of[digest] = record.origin
    return [_burst(together, by_origin, digests) for together in _joined(by_origin, origin_of)]


def _joined(
    by_origin: dict[str, list[_Bound]], origin_of: dict[str, str]
) -> Iterator[frozenset[str]]:
    """Yield plans that have members in common, together."""
    linked: dict[str, set[str]] = {origin: set() for origin in by_origin}
    for origin, bound in by_origin.items():
        for other in {origin_of[one] for each in bound for one in each.listed if one in origin_of}:
            linked[origin].add(other)
            linked[other].add(origin)
    while linked:
        found, reached = set[str](), [min(linked)]
        while reached:
            origin = reached.pop()
            if origin in linked:
                found.add(origin)
                reached += linked.pop(origin)
        yield frozenset(found)


def _burst(
    origins: frozenset[str], by_origin: dict[str, list[_Bound]], digests: dict[str, str]
) -> Burst:
    found = [one for origin in origins for one in by_origin[origin]]
    listed = frozenset(digest for one in found for digest in one.listed)
    return Burst(
        origins,
        frozenset(one.uid for one in found) | {digests[one] for one in listed & digests.keys()},
        listed,
        max(one.record.count for one in found),
        max(one.record.until for one in found),
    )
