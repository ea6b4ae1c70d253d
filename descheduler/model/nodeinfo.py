"""Nodes as the descheduler sees them, and what their agents have measured."""

from collections.abc import Mapping

import msgspec

from api.kubernetes import core
from descheduler.model import podinfo


class Node(msgspec.Struct, frozen=True, gc=False):
    """One node."""

    name: str
    uid: str = ""
    labels: Mapping[str, str] = {}
    taints: tuple[core.Taint, ...] = ()
    """As written, of every effect; without one for `schedulable`."""
    is_ready: bool = True
    """False where the condition Ready says so; a node without that condition counts as ready."""
    is_schedulable: bool = True
    """False where it is cordoned."""
    allocatable: podinfo.Amounts = podinfo.NOTHING
    capacity: podinfo.Amounts = podinfo.NOTHING
    """What load is measured against: allocatable before amplification."""


class Usage(msgspec.Struct, frozen=True, gc=False):
    """What a NodeMetric says was used."""

    node: str
    updated_at: float
    """Seconds since the epoch."""
    system: podinfo.Amounts = podinfo.NOTHING
    """Outside pods and host applications."""
    by_pod: Mapping[str, podinfo.Amounts] = {}
    """By namespace/name."""
    pressure: Mapping[str, float] = {}
    """Share of time in percent that tasks of the node waited, by resource, where it is reported."""
    throttled: Mapping[str, float] = {}
    """By namespace/name, of pods of which it is measured: the share of periods in percent in which
    a container was throttled by its CPU limit."""
    slowed: Mapping[str, Mapping[str, float]] = {}
    """By namespace/name, of pods that fare worse than usual: the signals that say so and their
    values, such as `cpu-some`, the share of time in percent that a task waited for a CPU."""
