"""What interference detection returns: victims, signals, suspects. Values only."""

import enum
from collections.abc import Mapping
from typing import Final

import msgspec


class Resource(enum.StrEnum):
    """What pods compete for."""

    CPU = "cpu"
    MEMORY = "memory"
    IO = "io"


class Signal(enum.StrEnum):
    """A figure of a victim that rises when others get in its way."""

    CPI = "cpi"
    """Cycles per instruction of a container: caches, memory bandwidth, threads of one core."""
    CPU_SOME = "cpu-some"
    CPU_FULL = "cpu-full"
    MEMORY_SOME = "memory-some"
    MEMORY_FULL = "memory-full"
    IO_SOME = "io-some"
    IO_FULL = "io-full"


class Kind(msgspec.Struct, frozen=True):
    """How one signal is judged."""

    resource: Resource
    least: float
    """The smallest rise that counts: percentage points of PSI, cycles per instruction of CPI."""
    lead: float = 20.0
    """How many seconds before its first raised sample the cause may have begun."""


RELATIVE: Final = 0.25
"""The smallest rise that counts, as a share of the baseline."""
KINDS: Final[Mapping[Signal, Kind]] = {
    Signal.CPI: Kind(Resource.CPU, 0.1, 70.0),
    Signal.CPU_SOME: Kind(Resource.CPU, 10.0),
    Signal.CPU_FULL: Kind(Resource.CPU, 10.0),
    Signal.MEMORY_SOME: Kind(Resource.MEMORY, 5.0),
    Signal.MEMORY_FULL: Kind(Resource.MEMORY, 3.0),
    Signal.IO_SOME: Kind(Resource.IO, 10.0),
    Signal.IO_FULL: Kind(Resource.IO, 10.0),
}
PRESSURES: Final[Mapping[Signal, str]] = {
    signal: f"pressure-{signal.value}" for signal in Signal if signal is not Signal.CPI
}
"""The series of a pod in which each kind of waiting is kept."""


class Confidence(enum.StrEnum):
    """How much speaks for interference."""

    LOW = "low"
    """No suspect is known, or how much the victim itself asks for is not."""
    MEDIUM = "medium"
    HIGH = "high"
    """The rise is twice what would do, and one suspect makes up half of what was added."""


class Suspect(msgspec.Struct, frozen=True):
    """A neighbour whose use rose when the victim's signal did."""

    namespace: str
    """Empty for what runs outside of pods."""
    name: str
    qos: str
    rise: float
    """Cores, bytes or bytes per second."""
    share: float
    """Of all that was added by neighbours."""

    @property
    def key(self) -> str:
        """Return ``namespace/name``, or what it is called outside of pods."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Finding(msgspec.Struct, frozen=True):
    """One signal of one victim that is far above its own baseline."""

    uid: str
    namespace: str
    name: str
    container: str
    """Empty for the pod as a whole."""
    qos: str
    signal: Signal
    value: float
    """Percent of ten seconds for PSI, cycles per instruction for CPI."""
    usual: float
    deviations: float
    """How many standard deviations the value is above what is usual."""
    since: float
    """Wall clock of the first raised sample."""
    suspects: tuple[Suspect, ...] = ()
    """The likeliest first: lower classes before higher ones, then by what they added."""
    confidence: Confidence = Confidence.LOW

    @property
    def resource(self) -> Resource:
        """What the pods compete for."""
        return KINDS[self.signal].resource

    @property
    def episode(self) -> tuple[str, str, Signal, float]:
        """What tells one time of interference from the next."""
        return self.uid, self.container, self.signal, self.since

    def figure(self) -> str:
        """Return the figure with its baseline, in words."""
        if self.signal is Signal.CPI:
            text = f"{self.value:.2f} cycles per instruction, usually {self.usual:.2f}"
        else:
            resource, _, kind = self.signal.value.partition("-")
            who = "all its tasks wait" if kind == "full" else "some of its tasks wait"
            text = (
                f"{who} for {resource} {self.value:.0f} % of the time, usually {self.usual:.0f} %"
            )
        return f"container {self.container}: {text}" if self.container else text

    def note(self) -> str:
        """Return the finding as a text of one line for an event."""
        return f"{self.figure()} ({self.deviations:.1f} deviations above); {self.blame()}"

    def blame(self) -> str:
        """Name the suspects, in words."""
        if not self.suspects:
            return "no neighbour is suspected"
        named = (
            f"{one.key}{f' ({one.qos})' if one.qos else ''}, which added "
            f"{amount(self.resource, one.rise)}"
            for one in self.suspects
        )
        return f"suspected with {self.confidence} confidence: {'; '.join(named)}"


def amount(resource: Resource, value: float) -> str:
    """Return an amount in its unit."""
    if resource is Resource.CPU:
        return f"{value:.2f} cores"
    unit = "MiB of memory" if resource is Resource.MEMORY else "MiB/s of disk traffic"
    return f"{value / (1 << 20):.0f} {unit}"
