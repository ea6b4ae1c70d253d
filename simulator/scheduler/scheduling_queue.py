"""Which pod is tried next, and what brings a refused pod back; pure."""

import dataclasses
import enum
from collections.abc import Iterable, Mapping

FLUSH_SECONDS = 300.0


class Happening(enum.Enum):
    """What may let a refused pod fit."""

    POD_ADDED = "a pod took a place on a node"
    POD_CHANGED = "a pod on a node changed"
    POD_GONE = "a pod left its node"
    NODE_ADDED = "a node joined"
    NODE_CAPACITY = "the allocatable amounts of a node changed"
    NODE_LABELS = "the labels of a node changed"
    NODE_TAINTS = "the taints of a node changed, or it may be used again"
    NODE_OTHER = "annotations or conditions of a node changed"
    OWN_TOLERATIONS = "the waiting pod itself got another toleration"
    OWN_CHANGE = "the waiting pod itself changed otherwise"
    OWN_STATUS = "only the status of the waiting pod itself changed"


EXTENDER = "Extender"
ANY = frozenset(Happening)
_KNOWN = ANY - {Happening.OWN_STATUS}
_NODE_ADDED = Happening.NODE_ADDED
_TAINTS = frozenset({_NODE_ADDED, Happening.NODE_TAINTS, Happening.OWN_TOLERATIONS})
# What each reason for a refusal waits for; an extender's reasons are unknown, so for anything.
WAKING: Mapping[str, frozenset[Happening]] = {
    EXTENDER: ANY,
    "NodeUnschedulable": _TAINTS,
    "NodeName": frozenset({_NODE_ADDED}),
    "TaintToleration": _TAINTS,
    "NodeAffinity": frozenset({_NODE_ADDED, Happening.NODE_LABELS}),
    "NodePorts": frozenset({_NODE_ADDED, Happening.POD_GONE}),
    "NodeResourcesFit": frozenset({_NODE_ADDED, Happening.NODE_CAPACITY, Happening.POD_GONE}),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A pod in the queue: its key, what orders it, and how its last attempt ended."""

    key: str
    priority: int
    created: str
    arrival: int
    attempts: int = 0
    ready_at: float = 0.0
    """End of the back-off."""
    parked_at: float = 0.0
    refused_by: frozenset[str] = frozenset()
    failed: bool = False
    """The last attempt ended in an error; then idle time does not shorten the back-off."""

    @property
    def order(self) -> tuple[int, str, int]:
        """Higher priority first, then the older pod."""
        return (-self.priority, self.created, self.arrival)


class Queue:
    """Pods to try now, pods in back-off, and pods that wait for something to happen."""

    def __init__(self, *, initial_backoff: float = 1.0, max_backoff: float = 10.0) -> None:
        self._initial = initial_backoff
        self._longest = max_backoff
        self.flush_seconds = FLUSH_SECONDS
        """After how long a parked pod is tried again though nothing has happened."""
        self._arrivals = 0
        self._active: dict[str, Entry] = {}
        self._backoff: dict[str, Entry] = {}
        self._parked: dict[str, Entry] = {}
        self._trying: dict[str, tuple[Entry, set[Happening]]] = {}

    def __contains__(self, key: str) -> bool:
        return any(
            key in part for part in (self._active, self._backoff, self._parked, self._trying)
        )

    @property
    def waiting(self) -> dict[str, int]:
        """How many pods are where."""
        return {
            "active": len(self._active),
            "backoff": len(self._backoff),
            "parked": len(self._parked),
            "trying": len(self._trying),
        }

    def add(self, key: str, priority: int, created: str) -> None:
        """Put a new pod into the queue."""
        if key in self:
            return
        self._arrivals += 1
        self._active[key] = Entry(key, priority, created, self._arrivals)

    def remove(self, key: str) -> None:
        """Forget a pod that is gone or has a node; one being tried is forgotten as well."""
        for part in (self._active, self._backoff, self._parked):
            part.pop(key, None)
        self._trying.pop(key, None)

    def pop(self, now: float) -> str | None:
        """Return the pod to try next, None when none is due."""
        self._release(now)
        ready = self._active or {k: e for k, e in self._backoff.items() if not e.failed}
        if not ready:
            return None
        # An idle scheduler does not sit out the back-off of pods that something has woken.
        chosen = min(ready.values(), key=lambda entry: entry.order)
        self._active.pop(chosen.key, None)
        self._backoff.pop(chosen.key, None)
        self._trying[chosen.key] = (
            dataclasses.replace(chosen, attempts=chosen.attempts + 1),
            set(),
        )
        return chosen.key

    def due_in(self, now: float) -> float | None:
        """Seconds until a pod becomes due by time alone, None when nothing waits for time."""
        instants = [entry.ready_at for entry in self._backoff.values()]
        instants += [self._flushed_at(entry) for entry in self._parked.values()]
        return max(0.0, min(instants) - now) if instants else None

    def park(self, key: str, refused_by: Iterable[str], now: float) -> None:
        """Put back a pod that fits nowhere; what happened during the attempt counts."""
        found = self._trying.pop(key, None)
        if found is None:
            return
        entry, happened = found
        entry = dataclasses.replace(
            entry,
            refused_by=frozenset(refused_by),
            parked_at=now,
            ready_at=now + self._pause(entry.attempts),
            failed=False,
        )
        if any(_wakes(happening, entry) for happening in happened):
            self._backoff[key] = entry
        else:
            self._parked[key] = entry

    def retry(self, key: str, now: float) -> None:
        """Put back a pod whose attempt ended in an error; it is tried again after back-off."""
        found = self._trying.pop(key, None)
        if found is None:
            return
        entry = found[0]
        self._backoff[key] = dataclasses.replace(
            entry, ready_at=now + self._pause(entry.attempts), failed=True
        )

    def done(self, key: str) -> None:
        """End an attempt that placed the pod."""
        self._trying.pop(key, None)

    def happened(self, happening: Happening, now: float, priority: int | None = None) -> None:
        """Wake every parked pod that this could help, of at most this priority if one is given."""
        for entry, seen in self._trying.values():
            if priority is None or entry.priority <= priority:
                seen.add(happening)
        woken = [
            key
            for key, entry in self._parked.items()
            if _wakes(happening, entry) and (priority is None or entry.priority <= priority)
        ]
        for key in woken:
            self._wake(key, now)

    def changed(self, key: str, happening: Happening, now: float) -> None:
        """Wake one parked pod because it was changed itself."""
        if key in self._trying:
            self._trying[key][1].add(happening)
        elif key in self._parked and _wakes(happening, self._parked[key]):
            self._wake(key, now)

    def _release(self, now: float) -> None:
        for key in [k for k, e in self._parked.items() if self._flushed_at(e) <= now]:
            self._wake(key, now)
        for key in [k for k, e in self._backoff.items() if e.ready_at <= now]:
            self._active[key] = self._backoff.pop(key)

    def _flushed_at(self, entry: Entry) -> float:
        # One sum for both: a difference may round such that a pod is due in 0 s and not yet due.
        return entry.parked_at + self.flush_seconds

    def _wake(self, key: str, now: float) -> None:
        entry = self._parked.pop(key)
        part = self._active if entry.ready_at <= now else self._backoff
        part[key] = entry

    def _pause(self, attempts: int) -> float:
        return min(self._longest, self._initial * 2.0 ** min(max(0, attempts - 1), 30))


def _wakes(happening: Happening, entry: Entry) -> bool:
    if not entry.refused_by:
        # No plug-in refused it, there was just no node: whatever happens may help.
        return True
    return any(happening in WAKING.get(name, _KNOWN) for name in entry.refused_by)
