"""Every change that the picture of the cluster can undergo, and how each is undone."""

import dataclasses

from domain.usage import load
from extender.state import lending, records


@dataclasses.dataclass(frozen=True, slots=True)
class PodDelta:
    """A pod is counted on another node than before; None: on no node."""

    uid: str
    before: records.PodRecord | None
    after: records.PodRecord | None


@dataclasses.dataclass(frozen=True, slots=True)
class NodeDelta:
    """A node came, went or changed."""

    name: str
    before: records.NodeRecord | None
    after: records.NodeRecord | None


@dataclasses.dataclass(frozen=True, slots=True)
class ReportDelta:
    """The agent of a node measured something new, or its report is gone."""

    name: str
    before: load.Report | None
    after: load.Report | None


@dataclasses.dataclass(frozen=True, slots=True)
class LendingDelta:
    """The rules by which nodes lend what they do not use have changed."""

    before: lending.LendingRules
    after: lending.LendingRules


Delta = PodDelta | NodeDelta | ReportDelta | LendingDelta


def inverse(delta: Delta) -> Delta:
    """Return the delta that undoes another."""
    match delta:
        case PodDelta(uid, before, after):
            return PodDelta(uid, after, before)
        case NodeDelta(name, was, becomes):
            return NodeDelta(name, becomes, was)
        case ReportDelta(name, older, newer):
            return ReportDelta(name, newer, older)
        case LendingDelta(old, new):
            return LendingDelta(new, old)


class StaleError(Exception):
    """A delta that was made for another state than the one it is applied to."""
