"""What one day of decisions came to: edits, evictions and what best effort was held back. Pure.

A day is one of UTC. It is small whatever happens on it: rows and pods beyond a bound are counted
together.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from agent.model import edits, state
from api import names
from api.wire import durations
from domain.pods import resources

MOST_ROWS: Final = 300
MOST_PODS: Final = 2000
KEEP_DAYS: Final = 30
OTHERS: Final = "(others)"
WRITTEN, WOULD_WRITE = "written", "would have written"
EVICTED, WOULD_EVICT = "evicted", "would have evicted"
FOREIGN, CONFLICT = "given up", "conflict"
_FIGURES: Final = (
    "seconds", "overSeconds", "knownSeconds", "heldSeconds", "heldCoreSeconds", "enforcedSeconds",
    "enforcedHeldCoreSeconds", "measuredPodSeconds", "throttledPodSeconds",
)  # fmt: skip
MOST_STRATEGIES: Final = 16
"""Strategies whose evictions are reported."""
_VERSION: Final = 1
_AT_ITS_LIMIT: Final = 0.95
"""What of its limit work uses that would use more."""


class ScoreError(ValueError):
    """A day that cannot be read; the text says why."""


class About(NamedTuple):
    """What a count is about."""

    strategy: str
    namespace: str
    """Empty for a group of a whole class, and for the host."""
    quality: str
    """The QoS class; empty for the host."""


class Second(NamedTuple):
    """What one tick adds."""

    seconds: float
    over: bool | None
    """Whether the node uses more cpu than the threshold, None where that is not known."""
    bound: bool = False
    """Whether best effort is, or would be, at its limit."""
    held_cores: float = 0.0
    """Cores that best effort would use, or asks for, beyond what it gets."""
    enforced: bool = False
    """Whether suppression is enforced; else it is only observed."""
    measured: int = 0
    """Online pods of which throttling is measured."""
    throttled: float = 0.0
    """The sum of the shares of periods in which they are throttled."""


def second(
    picture: state.NodeState, suppress: edits.Decision | None, seconds: float, *, enforced: bool
) -> Second:
    """Return what one look adds.

    Where suppression is only observed, what best effort uses beyond what it would be allowed is
    held back; where it is enforced, what it asks for and does not get while it is at its limit.
    """
    shares = list(_throttled(picture))
    seen = Second(
        seconds, _over(picture), enforced=enforced, measured=len(shares), throttled=sum(shares)
    )
    allowed_milli = None if suppress is None else suppress.figures.get("allowed-milli")
    wanted = [pod for pod in picture.pods if pod.best_effort]
    if allowed_milli is None or not wanted:
        return seen
    allowed, used = allowed_milli / 1000, sum(pod.usage.cpu or 0.0 for pod in wanted)
    bound = used >= allowed * _AT_ITS_LIMIT
    if not bound:
        return seen
    asked = used
    if enforced:
        batch = (resources.pod_requests(pod.pod).get(names.BATCH_CPU, 0) for pod in wanted)
        asked, allowed = sum(batch) / 1000, used
    return seen._replace(bound=bound, held_cores=max(0.0, asked - allowed))


def _throttled(picture: state.NodeState) -> Iterator[float]:
    """Yield of every online pod that is measured the share of its worst container."""
    for pod in picture.pods:
        if not pod.best_effort:
            shares = [one.throttled for one in pod.containers if one.throttled is not None]
            if shares:
                yield max(shares)


def _over(picture: state.NodeState) -> bool | None:
    """Tell whether the node uses more cpu than suppression lets it."""
    if picture.thresholds is None or picture.usage.cpu is None or not picture.capacity_milli:
        return None
    limit = picture.capacity_milli * picture.thresholds.cpu_suppress_percent
    return picture.usage.cpu * 1000 * 100 > limit


def date(at: float) -> str:
    """Return the day of a moment."""
    return durations.moment(at)[:10]


class Day:
    """The sums of one day."""

    def __init__(self, day: str) -> None:
        self.date = day
        self.figures: dict[str, float] = dict.fromkeys(_FIGURES, 0.0)
        self.counts: dict[tuple[About, str], int] = {}
        """How often something came out, by what it is about and the outcome."""
        self.concerned: dict[str, dict[bool, set[int]]] = {
            outcome: {True: set(), False: set()} for outcome in (EVICTED, WOULD_EVICT)
        }
        """Whom evictions concern, by outcome and by whether the pod is online; not their names."""

    def tick(self, second: Second) -> None:
        """Add one look at the node."""
        figures, seconds = self.figures, second.seconds
        figures["seconds"] += seconds
        if second.over is not None:
            figures["knownSeconds"] += seconds
            figures["overSeconds"] += seconds if second.over else 0.0
        if second.bound:
            figures["heldSeconds"] += seconds
            figures["heldCoreSeconds"] += seconds * second.held_cores
            if second.enforced:
                figures["enforcedHeldCoreSeconds"] += seconds * second.held_cores
        if second.enforced:
            figures["enforcedSeconds"] += seconds
        figures["measuredPodSeconds"] += seconds * second.measured
        figures["throttledPodSeconds"] += seconds * second.throttled

    def count(self, about: About, outcome: str) -> None:
        """Add one outcome."""
        key = about, outcome
        if key not in self.counts and len(self.counts) >= MOST_ROWS:
            key = About(OTHERS, "", ""), outcome
        self.counts[key] = self.counts.get(key, 0) + 1

    def evict(self, about: About, outcome: str, uid: str, *, online: bool) -> None:
        """Add one eviction, carried out or not; a pod is counted once."""
        self.count(about, outcome)
        pods = self.concerned.get(outcome)
        if pods is not None and len(pods[online]) < MOST_PODS:
            pods[online].add(zlib.crc32(uid.encode()))

    def pods(self, outcome: str, *, online: bool) -> int:
        """Return how many pods had an outcome."""
        return len(self.concerned[outcome][online])

    def total(self, outcome: str) -> int:
        """Return how often something came out."""
        return sum(n for (_, known), n in self.counts.items() if known == outcome)

    def summary(self) -> dict[str, float]:
        """Return the figures of the whole day by name."""
        found = dict(self.figures)
        for name, outcome in (
            ("written", WRITTEN), ("wouldWrite", WOULD_WRITE),
            ("conflicts", CONFLICT), ("foreignWriters", FOREIGN),
        ):  # fmt: skip
            found[name] = self.total(outcome)
        for name, outcome in (("evicted", EVICTED), ("wouldEvict", WOULD_EVICT)):
            online = self.pods(outcome, online=True)
            found[f"{name}Pods"] = online + self.pods(outcome, online=False)
            found[f"{name}OnlinePods"] = online
        return {name: round(value, 3) for name, value in found.items()}

    def as_status(self) -> dict[str, Any]:
        """Return the day as a NodeMetric carries it: a few numbers, however much happened."""
        told = self.summary()
        held, enforced = told["heldCoreSeconds"], told["enforcedHeldCoreSeconds"]
        whole = {
            "seconds": told["seconds"],
            "enforcedSeconds": told["enforcedSeconds"],
            "knownSeconds": told["knownSeconds"],
            "overSeconds": told["overSeconds"],
            "atLimitSeconds": told["heldSeconds"],
            "suppressedCoreSeconds": enforced,
            "wouldSuppressCoreSeconds": held - enforced,
            "measuredPodSeconds": told["measuredPodSeconds"],
            "throttledPodSeconds": told["throttledPodSeconds"],
            "evictedPods": told["evictedPods"],
            "evictedOnlinePods": told["evictedOnlinePods"],
            "wouldEvictPods": told["wouldEvictPods"],
            "wouldEvictOnlinePods": told["wouldEvictOnlinePods"],
        }
        numbers = {name: max(round(value), 0) for name, value in whole.items()}
        return {"date": self.date, **numbers, "evictions": list(self._evictions())}

    def _evictions(self) -> Iterator[dict[str, Any]]:
        """Yield how often each strategy evicted, those that did so most."""
        found: dict[str, dict[str, int]] = {}
        names_of = {EVICTED: "evicted", WOULD_EVICT: "wouldEvict"}
        for (about, outcome), number in self.counts.items():
            if (name := names_of.get(outcome)) is not None:
                row = found.setdefault(about.strategy, dict.fromkeys(names_of.values(), 0))
                row[name] += number
        most = sorted(found.items(), key=lambda item: (-sum(item[1].values()), item[0]))
        for strategy, row in sorted(most[:MOST_STRATEGIES]):
            yield {"strategy": strategy, **row}

    def as_json(self) -> dict[str, Any]:
        """Return the day as it is served."""
        return {"date": self.date, "summary": self.summary(), "rows": list(self._rows())}

    def _rows(self) -> Iterator[dict[str, Any]]:
        rows: dict[About, dict[str, int]] = {}
        for (about, outcome), number in self.counts.items():
            rows.setdefault(about, {})[outcome] = number
        for about, outcomes in sorted(rows.items()):
            yield {
                "strategy": about.strategy,
                "namespace": about.namespace,
                "class": about.quality,
                "outcomes": dict(sorted(outcomes.items())),
            }

    def written(self) -> bytes:
        """Return the bytes of the day's file."""
        body = {
            "version": _VERSION,
            "date": self.date,
            "figures": self.figures,
            "counts": [[*about, outcome, n] for (about, outcome), n in self.counts.items()],
            "pods": [
                [outcome, online, sorted(uids)]
                for outcome, sides in self.concerned.items()
                for online, uids in sides.items()
            ],
        }
        text = json.dumps(body, separators=(",", ":")).encode()
        return b"%08x %s\n" % (zlib.crc32(text), text)


def read(data: bytes) -> Day:
    """Read the file of a day; raises ScoreError for anything that is none."""
    checksum, _, text = data.rstrip(b"\n").partition(b" ")
    if not text or checksum != b"%08x" % zlib.crc32(text):
        raise ScoreError("cut short or changed")
    try:
        return _day(json.loads(text))
    except (ValueError, LookupError, TypeError, RecursionError, OverflowError) as error:
        raise ScoreError(f"{type(error).__name__}: {error}") from error


def _day(body: Mapping[str, Any]) -> Day:
    if body["version"] != _VERSION:
        raise ScoreError(f"of version {body['version']}")
    found = Day(str(body["date"]))
    for name in _FIGURES:
        # An earlier release did not count everything.
        found.figures[name] = float(body["figures"].get(name, 0.0))
    for strategy, namespace, quality, outcome, number in body["counts"][: MOST_ROWS * 2]:
        about = About(str(strategy), str(namespace), str(quality))
        found.counts[about, str(outcome)] = int(number)
    for outcome, online, uids in body["pods"]:
        found.concerned[str(outcome)][bool(online)] = set(map(int, uids[:MOST_PODS]))
    return found
