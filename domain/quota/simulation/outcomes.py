"""What happens to a pod while quotas are played forward: a start, an eviction, or a wait."""

from collections.abc import Mapping
from typing import NamedTuple


class Start(NamedTuple):
    """A pod that waited and is placed."""

    uid: str
    at: float
    node: str


class Eviction(NamedTuple):
    """A pod that makes room, for a pod of its own quota or for a quota that is entitled to it."""

    uid: str
    at: float
    kind: str
    """``preemption`` or ``reclaim``."""
    gains: str
    """The uid of the pod, or the name of the quota, for which it leaves."""
    lost: Mapping[str, float]
    """Work that is lost: amount times seconds, by resource."""


class Wait(NamedTuple):
    """A pod that still waits in the end, and for what."""

    uid: str
    sentence: str
    needs: Mapping[str, int]
    """How much has to become free, by resource."""
    of: str
    """Where: the name of a quota, empty for a node."""
    place: int = 0
    of_line: int = 0
