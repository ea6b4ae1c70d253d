"""The receipt of a move: what was measured and expected before it, and what came of it. Pure.

It stands as JSON in the annotation `koord.sh/migration-receipt` of the PodMigrationJob.
"""

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from api import names
from api.wire import untrusted
from descheduler.model import objects, podinfo

Percents = Mapping[str, float]
"""Load of a node in percent of its capacity, by resource."""
_BOUNDS: Final = untrusted.Bounds(bytes=8 << 10, depth=5, parts=512)
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class Verdict(enum.StrEnum):
    """What became of a move."""

    PAID = "Paid"
    NOT_PAID = "NotPaid"
    UNKNOWN = "Unknown"
    """Nothing tells: the new pod has gone, or nothing is measured."""
    NOT_MOVED = "NotMoved"
    """The job failed before the pod was evicted: nothing was gained and nothing lost."""


class _Part(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    pass


class Ends(_Part, frozen=True, gc=False, omit_defaults=True):
    """Load of the node that a pod leaves and of the one that it moves to."""

    source: Percents = {}
    target: Percents = {}


class Quality(_Part, frozen=True, gc=False, omit_defaults=True):
    """How a pod fares."""

    restarts: int = 0
    """Of its containers."""
    slowed: Percents = {}
    """What is worse than usual, such as cpu-some (PSI) or cpi, by signal, as its agent reports."""
    throttled: float | None = None
    """Share of periods in percent in which its CPU limit throttled it; None where not measured."""


class Outcome(_Part, frozen=True, gc=False, omit_defaults=True):
    """What was measured after a move."""

    verdict: Verdict
    at: float
    """Seconds since the epoch."""
    reason: str = ""
    gain: float | None = None
    """In points; None where the purpose of the move has no figure."""
    pod: str = ""
    """The pod that replaced it, as namespace/name."""
    node: str = ""
    now: Ends = Ends()
    quality: Quality = Quality()


class Receipt(_Part, frozen=True, gc=False, omit_defaults=True):
    """A move from its decision on."""

    sentence: str
    profile: str
    plugin: str
    purpose: str
    pod: str
    """namespace/name."""
    source: str
    at: float
    """When it was decided, in seconds since the epoch."""
    target: str = ""
    gain: float = 0.0
    """What was expected, in points."""
    cost: float = 0.0
    used: podinfo.Amounts = {}
    """What the pod used."""
    before: Ends = Ends()
    expected: Ends = Ends()
    quality: Quality = Quality()
    outcome: Outcome | None = None

    @property
    def is_open(self) -> bool:
        """Whether nothing is known yet of what came of it."""
        return self.outcome is None


def text(one: Receipt) -> str:
    """Return the annotation."""
    return _ENCODER.encode(one).decode()


def read(job: objects.Job) -> Receipt | None:
    """Return the receipt of a job; None where it has none, or one that cannot be read."""
    written = job.annotations.get(names.ANNOTATION_MIGRATION_RECEIPT, "")
    if not written:
        return None
    try:
        return untrusted.decode(written, Receipt, "receipt", bounds=_BOUNDS)
    except untrusted.ReadError:
        return None


def loads(percents: Percents) -> str:
    """Return loads for people: `cpu 90 %, memory 20 %`."""
    return ", ".join(f"{name} {value:.0f} %" for name, value in sorted(percents.items()))


def change(node: str, before: Percents, after: Percents) -> str:
    """Return how the load of a node changes, for people: `n1 cpu 90 % → 80 %`."""
    told = [
        f"{name} {before[name]:.0f} % → {value:.0f} %"
        for name, value in sorted(after.items())
        if name in before
    ]
    return f"{node} {', '.join(told)}" if told else node
