"""What a pod asks for: one object for all pods that ask for the same."""

from collections.abc import Callable
from typing import Final

import msgspec

from api.koordinator.metadata import qos
from domain import short_memo

_LONGEST_TEXTS: Final = 8 << 10
"""Characters of what plug-ins read of a pod that is remembered."""

Pairs = tuple[tuple[str, int], ...]
"""Amounts as sorted pairs: smaller than a dict, comparable and hashable."""


HostPort = tuple[str, str, int]
"""Address, empty for all, protocol and number of a port of the node."""


class PodRequirements(msgspec.Struct, frozen=True, weakref=True, cache_hash=True):
    """What a pod asks for, as far as plug-ins care; shared between pods that are alike."""

    requests: Pairs
    limits: Pairs
    band: qos.Band
    daemon: bool = False
    scaling_factors: str = ""
    seconds_after_scheduled: str = ""
    seconds_after_initialized: str = ""
    priority: int = 0
    inputs: tuple[tuple[str, str], ...] = ()
    """The labels and annotations that plug-ins look at, sorted; absent ones are not in it."""
    preempts: bool = True
    """False: its preemptionPolicy is Never."""
    grace_seconds: int = 30
    """terminationGracePeriodSeconds: how long it may take to leave."""

    nonzero: tuple[int, int] = (0, 0)
    """Millicores and bytes that NonZeroRequested of its node counts for it."""
    sequential: Pairs = ()
    """What NodeResourcesFitPlus counts for it."""
    host_ports: tuple[HostPort, ...] = ()
    """The ports of its node that it listens on."""
    scheduling_group: str = ""
    """spec.schedulingGroup: the PodGroup of scheduling.k8s.io that it is a member of."""
    is_member: bool = False
    """Whether it declares a gang."""
    network_selector: str = ""
    """Its network-topology-selector, by which it is brought close to others in the network."""

    @property
    def lent(self) -> Pairs:
        """What the pod takes of lent capacity by native name; empty unless it is batch work.

        A batch pod that was not rewritten at admission still asks in native resources.
        """
        if self.band is not qos.Band.BATCH:
            return ()
        asked, found = dict(self.requests), list[tuple[str, int]]()
        for native, batch in qos.TRANSLATION[qos.Band.BATCH].items():
            amount = asked.get(batch) or asked.get(native, 0)
            if amount > 0:
                found.append((native, amount))
        return tuple(found)

    @staticmethod
    def remembered(most: int) -> Callable[[short_memo.Function], short_memo.Function]:
        """Keep what follows from what pods ask for: where that is long, until they are gone."""
        return short_memo.remembered(most, _is_short, weakly=True)


def _is_short(wanted: PodRequirements) -> bool:
    # Written out: it is asked once for every function and every pod that is like no other.
    longest = max(
        len(wanted.requests),
        len(wanted.limits),
        len(wanted.sequential),
        len(wanted.host_ports),
    )
    if longest > short_memo.MOST_LISTED:
        return False
    texts = len(wanted.scaling_factors) + len(wanted.seconds_after_scheduled)
    texts += len(wanted.seconds_after_initialized)
    for _, text in wanted.inputs:
        texts += len(text)
    return texts <= _LONGEST_TEXTS
