"""The network bandwidth that a node offers to pods, as an extended resource in bits per second."""

from collections.abc import Mapping
from typing import Final

from api import names
from api.wire import quantity

RESOURCES: Final = (names.NETWORK_BANDWIDTH,)
MOST: Final = 10**15
"""A petabit per second: a larger number is in the wrong unit."""


def offered(annotations: Mapping[str, str]) -> dict[str, int | None]:
    """Return what a node offers, from its annotation; None to offer it no longer.

    An amount that cannot be parsed offers nothing: the NodeSLO of the node reports it.
    """
    return {names.NETWORK_BANDWIDTH: _amount(annotations.get(names.ANNOTATION_NETWORK_BANDWIDTH))}


def _amount(written: str | None) -> int | None:
    if written is None:
        return None
    try:
        found = quantity.whole(written)
    except quantity.QuantityError:
        return None
    return found if 0 < found <= MOST else None
