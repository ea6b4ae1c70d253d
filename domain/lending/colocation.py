"""How much capacity a node may lend to batch pods: pure arithmetic on whole numbers.

Cpu is counted in milli-cores and memory in bytes. Nothing here knows Kubernetes objects.
"""

import dataclasses
import enum
import zlib
from collections.abc import Iterable
from typing import Final, NamedTuple

from api.koordinator.metadata.qos import Band

_EARLIER: Final = 0.1
_BORROWING: Final = frozenset({Band.BATCH, Band.FREE})


class Policy(enum.StrEnum):
    """By which figure the online share of a node is judged."""

    USAGE = "usage"
    REQUEST = "request"
    MAX_USAGE_REQUEST = "maxUsageRequest"
    OVERCOMMIT_RATIO = "overcommitRatio"


_POLICIES: Final = {policy.value: policy for policy in Policy}


def cpu_policy(written: str) -> Policy:
    """Read the policy for cpu; requests alone are no basis for cpu, so they count as usage."""
    policy = memory_policy(written)
    return Policy.USAGE if policy is Policy.REQUEST else policy


def memory_policy(written: str) -> Policy:
    """Read the policy for memory; an unknown word counts as usage."""
    return _POLICIES.get(written, Policy.USAGE)


def is_online(band: Band) -> bool:
    """Whether a pod of this band is served first, so that its use is never lent out."""
    return band not in _BORROWING


def holds_requests(band: Band) -> bool:
    """Whether the requests of such a pod reduce what overcommit by ratio may lend."""
    return band is not Band.BATCH


def lendable(allocatable: int, non_batch_requests: int, percent: int) -> int:
    """Return the share of the unrequested part of a node that batch pods may use.

    An overbooked node lends nothing, and a negative percentage counts as zero; the result is
    cut, never rounded up, so that the promise is never larger than the rule.
    """
    return max(allocatable - non_batch_requests, 0) * max(percent, 0) // 100


class Amount(NamedTuple):
    """Cpu in milli-cores and memory in bytes."""

    cpu: int = 0
    memory: int = 0

    def plus(self, other: "Amount") -> "Amount":
        """Add both parts."""
        return Amount(self.cpu + other.cpu, self.memory + other.memory)

    def minus(self, other: "Amount") -> "Amount":
        """Subtract both parts; the result may be negative."""
        return Amount(self.cpu - other.cpu, self.memory - other.memory)

    def most(self, other: "Amount") -> "Amount":
        """Take the larger of each part."""
        return Amount(max(self.cpu, other.cpu), max(self.memory, other.memory))


NOTHING: Final = Amount()


class Demand(NamedTuple):
    """What pods hold of a node, each figure the sum over pods."""

    requested: Amount = NOTHING
    """Requests of online pods."""
    used: Amount = NOTHING
    """Use of online pods; where nothing is measured yet, their requests."""
    peak: Amount = NOTHING
    """The larger of request and use of each measured online pod."""
    firm: Amount = NOTHING
    """Requests of all pods that are not batch, the base of overcommit by ratio."""
    prod: Amount = NOTHING
    """Requests of pods that are served before mid pods as well."""


NO_DEMAND: Final = Demand()


def demand(band: Band, request: Amount, usage: Amount | None, *, exclusive: bool) -> Demand:
    """Return what one listed pod adds; exclusive pods own the cpu they asked for, used or not."""
    firm = request if holds_requests(band) else NOTHING
    if not is_online(band):
        return Demand(firm=firm)
    prod = NOTHING if band is Band.MID else request
    if usage is None:
        # A pod without a measurement has just started: its request is what it may grow to.
        return Demand(request, request, NOTHING, firm, prod)
    used = Amount(request.cpu, usage.memory) if exclusive else usage
    return Demand(request, used, request.most(usage), firm, prod)


def unlisted(band: Band, usage: Amount) -> Demand:
    """Return what a measured pod adds that is not, or no longer, listed on the node."""
    return Demand(used=usage, peak=usage) if is_online(band) else NO_DEMAND


def summed(parts: Iterable[Demand]) -> Demand:
    """Add up what pods hold; in plain numbers, because a cluster has very many pods."""
    cpu_requested = cpu_used = cpu_peak = cpu_firm = cpu_prod = 0
    requested = used = peak = firm = prod = 0
    for part in parts:
        cpu_requested += part.requested.cpu
        cpu_used += part.used.cpu
        cpu_peak += part.peak.cpu
        cpu_firm += part.firm.cpu
        cpu_prod += part.prod.cpu
        requested += part.requested.memory
        used += part.used.memory
        peak += part.peak.memory
        firm += part.firm.memory
        prod += part.prod.memory
    return Demand(
        Amount(cpu_requested, requested),
        Amount(cpu_used, used),
        Amount(cpu_peak, peak),
        Amount(cpu_firm, firm),
        Amount(cpu_prod, prod),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """How much of one resource a node lends."""

    policy: Policy = Policy.USAGE
    reclaim_percent: int = 100
    """Share of the capacity that may be in use altogether; above 100 batch may exceed it."""
    cap_percent: int | None = None
    """Upper bound of what is lent, as a share of the capacity."""
    overcommit_percent: int = 0
    """Share of the unrequested part that overcommit by ratio lends."""


@dataclasses.dataclass(frozen=True, slots=True)
class Holding:
    """The figures of one resource of one node."""

    capacity: int
    allocatable: int
    reserved: int
    """Kept back by the kubelet or by the owner of the node, the larger of the two."""
    system: int
    """Measured use outside pods, online host applications included."""
    requested: int
    used: int
    peak: int
    firm: int


class Lending(NamedTuple):
    """What is lent of one resource, and the figures that decided."""

    value: int
    terms: tuple[tuple[str, int], ...]
    """First what there is, then everything that is taken off, by name."""
    cap: int | None = None
    """The bound that applied, if one did."""
    percent: int | None = None
    """The share of the difference that is lent, if not all of it."""


def lend(rule: Rule, node: Holding) -> Lending:
    """Return what a node lends of one resource to batch pods."""
    if rule.policy is Policy.OVERCOMMIT_RATIO:
        value = lendable(node.allocatable, node.firm, rule.overcommit_percent)
        terms = (("allocatable", node.allocatable), ("requested", node.firm))
        return _capped(Lending(value, terms, percent=max(rule.overcommit_percent, 0)), rule, node)
    # In double precision, as everyone computes it who compares with these figures.
    margin = int(node.capacity * ((100 - rule.reclaim_percent) / 100.0))
    taken = (("margin", margin), *_taken(rule.policy, node))
    value = max(node.capacity - sum(amount for _, amount in taken), 0)
    return _capped(Lending(value, (("capacity", node.capacity), *taken)), rule, node)


def _taken(policy: Policy, node: Holding) -> tuple[tuple[str, int], tuple[str, int]]:
    if policy is Policy.REQUEST:
        return ("reserved", node.reserved), ("requested", node.requested)
    outside = "system", max(node.system, node.reserved)
    if policy is Policy.MAX_USAGE_REQUEST:
        return outside, ("peak", node.peak)
    return outside, ("used", node.used)


def _capped(lending: Lending, rule: Rule, node: Holding) -> Lending:
    if rule.cap_percent is None:
        return lending
    cap = share(node.capacity, rule.cap_percent)
    return lending._replace(value=cap, cap=cap) if cap < lending.value else lending


def share(whole: int, percent: int) -> int:
    """Return a share, cut; in double precision, as everyone does who compares such figures."""
    return int(whole * (percent / 100.0))


def is_stale(updated_at: float | None, now: float, tolerated_seconds: float) -> bool:
    """Whether a report is missing or too old to lend by; exactly at the limit it still counts."""
    return updated_at is None or now > updated_at + tolerated_seconds


def refresh_after(seconds: float, name: str) -> float:
    """Return after which time small changes of a node are written: up to a tenth earlier.

    Nodes that were written together would otherwise be written together for ever.
    """
    return seconds * (1.0 - _EARLIER * (zlib.crc32(name.encode()) % 1000) / 1000)


def differs(old: int | None, new: int | None, threshold: float) -> bool:
    """Whether an amount changed by more than a share of what it was, or came or went."""
    if old is None or new is None:
        return old is not new
    return abs(new - old) > old * threshold
