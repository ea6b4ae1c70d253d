"""Why a node lends what it lends: every term that was used, as values that can be shown.

Amounts are whole numbers: milli-cores for cpu, bytes for memory, pieces or percent for devices.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from domain.lending import colocation

LENDS: Final = "lends"
WITHDRAWN: Final = "withdrawn"
UNKNOWN: Final = "unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class Term:
    """One figure of a sum; what is taken off is negative."""

    name: str
    value: int


@dataclasses.dataclass(frozen=True, slots=True)
class Resource:
    """How one lent resource came about, from the formula to what stands on the node."""

    resource: str
    policy: str
    terms: tuple[Term, ...]
    """What is added up; the total is never below 0."""
    calculated: int
    """Outcome of the formula, share and cap included."""
    percent: int | None = None
    """Share of the total that is lent; None for all of it."""
    cap: int | None = None
    """Upper bound; None where there is none."""
    capped: bool = False
    """Whether the cap decided."""
    normalized: float = 1.0
    """What cpu is multiplied by, because this node is faster than others."""
    third_party: int = 0
    """What others have handed out already and is taken off."""
    offered: int = 0
    """What is to stand on the node."""


@dataclasses.dataclass(frozen=True, slots=True)
class Figures:
    """What went into the formulas, for cpu and memory."""

    capacity: colocation.Amount
    allocatable: colocation.Amount
    reserved: colocation.Amount
    """Kept back by the kubelet or by annotation, the larger of the two."""
    system: colocation.Amount
    """Measured use outside pods and host applications."""
    hosts: colocation.Amount
    """Use of host applications that serve online traffic."""
    usage: colocation.Amount | None
    """Use of the whole node; None where it is not measured."""
    reclaimable: colocation.Amount
    """What online pods are predicted not to use of their requests."""
    requested: colocation.Amount
    """Requests of online pods."""
    used: colocation.Amount
    """Use of online pods, or requests where nothing is measured yet."""
    peak: colocation.Amount
    """The larger of both, pod by pod."""
    firm: colocation.Amount
    """Requests of everything that is not batch."""
    prod: colocation.Amount
    """Requests of what is served before mid pods."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What is configured for this node."""

    cpu: colocation.Rule
    memory: colocation.Rule
    degrade_seconds: int
    """Age at which a report no longer counts."""
    refresh_seconds: int
    """After which even a small change is written."""
    difference: float
    """Share by which a figure has to change to be written at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """What stands on the node and whether it is replaced."""

    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    seconds_ago: float | None
    """Since this process wrote last; None if it never did."""
    news: tuple[str, ...] = ()
    """What is written now and why, a phrase each."""
    kept: str = ""
    """Why a difference is not written now; empty where there is none."""


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """A ratio that the node carries in an annotation."""

    text: str
    """As it is to stand there; empty: none."""
    why: str = ""
    problem: str = ""
    """Why it cannot be said; the node then keeps what stands there."""


@dataclasses.dataclass(frozen=True, slots=True)
class Zone:
    """What one NUMA zone offers to batch pods."""

    name: str
    capacity: colocation.Amount
    offered: colocation.Amount


@dataclasses.dataclass(frozen=True, slots=True)
class Breakdown:
    """Everything that decided what one node lends at one moment."""

    node: str
    at: float
    """Seconds since the epoch."""
    state: str
    """lends, withdrawn or unknown."""
    reason: str
    """Why nothing is lent; empty where something is."""
    report_age: float | None
    """Age of the agent's last report in seconds; None without one."""
    sentence: str
    """The same for people."""
    resources: tuple[Resource, ...] = ()
    figures: Figures | None = None
    settings: Settings | None = None
    normalization: Said = Said("")
    amplification: Said = Said("")
    devices: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    """Amounts of accelerators and adapters by resource; None: taken off the node."""
    written: Written = Written({}, {}, None)
    zones: tuple[Zone, ...] = ()
    """NUMA zones, where the agent has said what there are; empty where nothing is lent."""

    @property
    def lends(self) -> bool:
        """Whether anything is calculated at all."""
        return self.state == LENDS

    def of(self, resource: str) -> Resource | None:
        """Return how one resource came about."""
        return next((found for found in self.resources if found.resource == resource), None)


def document(value: Any) -> Any:
    """Return a breakdown, or a part of one, as what JSON knows."""
    if isinstance(value, colocation.Amount):
        return value._asdict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in dataclasses.fields(value)}
        return document(parts)
    if isinstance(value, Mapping):
        return {key: document(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [document(inner) for inner in value]
    return value
