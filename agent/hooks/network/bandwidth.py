"""Amounts of bandwidth as people write them, for those who share it out.

Everything is written in bits per second, and the kernel counts bytes: each amount is divided by
eight exactly once.
"""

import msgspec

from agent.model import annotations, state
from api import names
from api.koordinator.settings import strategies as wire
from api.wire import quantity
from domain.pods import resources

BITS = 8


class BandwidthError(ValueError):
    """An amount that cannot be honoured; the text names where it stands and what is wrong."""


class Limits(msgspec.Struct, frozen=True):
    """The most that a pod may receive and send, in bytes per second; 0 for no limit."""

    ingress: int = 0
    egress: int = 0


class _Written(msgspec.Struct, frozen=True, rename="camel"):
    ingress_limit: str | int | None = None
    egress_limit: str | int | None = None


def share(written: int | str, total_bits: int) -> int:
    """Return bytes per second: a number is percent of the node's bandwidth, a text an amount."""
    percent = wire.percent(written)
    if percent is not None:
        return total_bits * percent // 100 // BITS
    return quantity.whole(written) // BITS


def of_pod(pod: state.PodState) -> Limits | None:
    """Return what a pod asks for, None where it asks for nothing; raises BandwidthError."""
    written = pod.pod.metadata.annotations.get(names.ANNOTATION_NETWORK_QOS)
    return None if written is None else _read(written)[0]


def requested(pod: state.PodState) -> int:
    """Return the bytes per second that a pod requests; raises BandwidthError.

    It is an extended resource in bits per second: schedulers and the kubelet have counted it.
    """
    try:
        amounts = resources.pod_requests(pod.pod)
    except quantity.QuantityError as error:
        raise BandwidthError(f"requests: {error}") from error
    return max(amounts.get(names.NETWORK_BANDWIDTH, 0), 0) // BITS


def both_named(pod: state.PodState) -> bool:
    """Tell whether a pod names both of its limits; raises BandwidthError."""
    written = pod.pod.metadata.annotations.get(names.ANNOTATION_NETWORK_QOS)
    return written is not None and _read(written)[1]


def _read(written: str) -> tuple[Limits, bool]:
    try:
        return _REMEMBERED(written)
    except annotations.ReadError as error:
        raise BandwidthError(str(error)) from error


def _limits(found: _Written) -> tuple[Limits, bool]:
    amounts = [
        0 if one is None else quantity.whole(one)
        for one in (found.ingress_limit, found.egress_limit)
    ]
    if min(amounts) < 0:
        raise ValueError("a limit must not be negative")
    ingress, egress = (amount // BITS for amount in amounts)
    named = found.ingress_limit is not None and found.egress_limit is not None
    return Limits(ingress, egress), named


_REMEMBERED = annotations.Reader(names.ANNOTATION_NETWORK_QOS, _Written, _limits)
