"""Which values of the cluster settings are allowed, and which belong together.

Two readers ask. Who admits a configuration map holds everything that is written against the
limits. Who acts on it refuses colocation settings only, after merging, and by limits that are a
little wider, so that what was stored before the limits existed goes on to hold.
"""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, get_args

from api.koordinator.metadata import qos
from api.koordinator.metrics import metric_collection
from api.koordinator.settings import configuration, slo, strategies

_LONGEST_VALUE: Final = 60
_CLASSES: Final = ("lsrClass", "lsClass", "beClass", "systemClass", "cgroupRoot")
_BLOCK_IO: Final = (slo.BLOCK_IO, slo.BLOCK_IO_SHORTHAND)


class Fault(NamedTuple):
    """Something wrong at one place of the configuration map."""

    path: str
    """The key, and below it the path in its JSON document."""
    note: str
    """The value, what is allowed and how to get there."""

    def __str__(self) -> str:
        """Return one sentence."""
        return f"{self.path}: {self.note}"


def shown(value: Any) -> str:
    """Return a value as it is written in JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """The values that a number may have."""

    low: float
    high: float | None = None
    above: bool = False
    """Whether the low end itself is excluded."""

    def holds(self, value: float) -> bool:
        """Whether a value is allowed."""
        if value < self.low or (self.above and value == self.low):
            return False
        return self.high is None or value <= self.high

    def __str__(self) -> str:
        """Return the range in words."""
        low, high = f"{self.low:g}", "" if self.high is None else f"{self.high:g}"
        if self.above:
            return f"more than {low}" + (f" and at most {high}" if high else "")
        return f"in {low}..{high}" if high else f"at least {low}"


_SHARE: Final = Range(0, 100)
_NOT_NEGATIVE: Final = Range(0)
_COUNT: Final = Range(1)
_FLAG: Final = Range(0, 1)

COLOCATION: Final[Mapping[str, Range]] = {
    "metricAggregateDurationSeconds": _COUNT,
    "metricReportIntervalSeconds": _COUNT,
    "cpuReclaimThresholdPercent": _NOT_NEGATIVE,
    "memoryReclaimThresholdPercent": _NOT_NEGATIVE,
    "overcommitPercent": _NOT_NEGATIVE,
    "degradeTimeMinutes": _COUNT,
    "updateTimeThresholdSeconds": _COUNT,
    "resourceDiffThreshold": Range(0, 1, above=True),
    "midCPUThresholdPercent": _SHARE,
    "midMemoryThresholdPercent": _SHARE,
    "midUnallocatedPercent": _SHARE,
    "midStaticCPUReservedPercent": _SHARE,
    "midStaticMemoryReservedPercent": _SHARE,
    "batchCPUThresholdPercent": _NOT_NEGATIVE,
    "batchMemoryThresholdPercent": _NOT_NEGATIVE,
}
# Where acting is more lenient than admitting.
_MERGED: Final[Mapping[str, Range]] = {
    **COLOCATION,
    "resourceDiffThreshold": Range(0, above=True),
    "midStaticCPUReservedPercent": _NOT_NEGATIVE,
    "midStaticMemoryReservedPercent": _NOT_NEGATIVE,
}
THRESHOLDS: Final[Mapping[str, Range]] = {
    "cpuSuppressThresholdPercent": _SHARE,
    "cpuSuppressMinPercent": _SHARE,
    "memoryEvictThresholdPercent": _SHARE,
    "memoryEvictLowerPercent": _SHARE,
    "memoryAllocatableEvictThresholdPercent": _NOT_NEGATIVE,
    "memoryAllocatableEvictLowerPercent": _NOT_NEGATIVE,
    "memoryRequestUtilizationPercent": _NOT_NEGATIVE,
    "cpuEvictBESatisfactionUpperPercent": _SHARE,
    "cpuEvictBESatisfactionLowerPercent": _SHARE,
    "cpuEvictBEUsageThresholdPercent": _SHARE,
    "cpuEvictTimeWindowSeconds": _COUNT,
    "cpuEvictThresholdPercent": _SHARE,
    "cpuEvictLowerPercent": _SHARE,
    "cpuAllocatableEvictThresholdPercent": _NOT_NEGATIVE,
    "cpuAllocatableEvictLowerPercent": _NOT_NEGATIVE,
    "allocatableEvictPriorityThreshold": Range(0, 7999),
}
BURST: Final[Mapping[str, Range]] = {
    "cpuBurstPercent": Range(1, 10000),
    "cfsQuotaBurstPercent": Range(100),
    "cfsQuotaBurstPeriodSeconds": Range(-1),
    "sharePoolThresholdPercent": _SHARE,
}
OVERRIDES: Final[Mapping[str, Range]] = {
    "cpuBurstPercent": Range(1, 10000),
    "cfsQuotaBurstPercent": Range(100),
    "cfsQuotaBurstPeriodSeconds": Range(-1),
    "minLimitPercent": _SHARE,
    "lowLimitPercent": _SHARE,
    "memoryPriority": Range(0, 12),
    "wmarkMinAdj": Range(-25, 50),
    "groupIdentity": Range(-1, 2),
    "oomScoreAdj": Range(-997, 1000),
    "catRangeStartPercent": _SHARE,
    "catRangeEndPercent": _SHARE,
    "mbaPercent": _SHARE,
}
SYSTEM: Final[Mapping[str, Range]] = {
    "minFreeKbytesFactor": _COUNT,
    "watermarkScaleFactor": Range(1, 400),
    "memcgReapBackGround": _FLAG,
    "pageCacheLimitEnabled": _FLAG,
}
# Throttling above 100 % is legal: it means that none happens below the hard limit.
QUALITY: Final[Mapping[str, Mapping[str, Range]]] = {
    "cpuQOS": {"groupIdentity": Range(-1, 2), "schedIdle": _FLAG},
    "memoryQOS": {
        "minLimitPercent": _SHARE,
        "lowLimitPercent": _SHARE,
        "throttlingPercent": _NOT_NEGATIVE,
        "wmarkRatio": _SHARE,
        "wmarkScalePermill": Range(1, 1000),
        "wmarkMinAdj": Range(-25, 50),
        "priorityEnable": _FLAG,
        "priority": Range(0, 12),
        "oomKillGroup": _FLAG,
        "pageCacheLimitPercent": _SHARE,
    },
    "resctrlQOS": {
        "catRangeStartPercent": _SHARE,
        "catRangeEndPercent": _SHARE,
        "mbaPercent": _SHARE,
    },
}
Pair = tuple[str, str]
"""Names of a lower and of an upper value, which are given together or not at all."""
_THRESHOLD_PAIRS: Final[tuple[Pair, ...]] = (
    ("memoryEvictLowerPercent", "memoryEvictThresholdPercent"),
    ("memoryAllocatableEvictLowerPercent", "memoryAllocatableEvictThresholdPercent"),
    ("cpuEvictBESatisfactionLowerPercent", "cpuEvictBESatisfactionUpperPercent"),
    ("cpuEvictLowerPercent", "cpuEvictThresholdPercent"),
    ("cpuAllocatableEvictLowerPercent", "cpuAllocatableEvictThresholdPercent"),
)
_CACHE_PAIRS: Final[tuple[Pair, ...]] = (("catRangeStartPercent", "catRangeEndPercent"),)
_SIMPLE: Final[Mapping[str, tuple[Mapping[str, Range], tuple[Pair, ...]]]] = {
    configuration.COLOCATION: (COLOCATION, ()),
    configuration.RESOURCE_THRESHOLD: (THRESHOLDS, _THRESHOLD_PAIRS),
    configuration.SYSTEM: (SYSTEM, ()),
    configuration.CPU_BURST: (BURST, ()),
    configuration.POD_OVERRIDE_LIMITS: (OVERRIDES, _CACHE_PAIRS),
}
Words = Mapping[str, tuple[str, ...]]
"""Fields that name one of a few things, and what they may name."""
COLLECTION_WORDS: Final[Words] = {
    "metricMemoryCollectPolicy": get_args(metric_collection.MemoryPolicy)
}
THRESHOLD_WORDS: Final[Words] = {
    "cpuSuppressPolicy": get_args(strategies.SuppressPolicy),
    "cpuEvictPolicy": get_args(strategies.EvictPolicy),
}
POLICY_WORDS: Final[Words] = {
    "cpuPolicy": get_args(strategies.CPUPolicy),
    "netQOSPolicy": get_args(strategies.NetworkPolicy),
}
BLOCK_WORDS: Final[Words] = {"type": get_args(strategies.BlockType)}
HOST_WORDS: Final[Words] = {
    "qos": tuple(one.value for one in qos.QoS if one.value),
    "priority": tuple(one.value for one in qos.Band if one.value),
}


def faults(
    key: str, parts: Iterable[tuple[str, Mapping[str, Any]]], *, pairs: bool = True
) -> list[Fault]:
    """Return every value that is not allowed in what is said under a key, each part by its path.

    `pairs` asks also for values that are given without the one that they belong to.
    """
    found: list[Fault] = []
    for path, values in parts:
        found += unknown_words(key, path, values)
        if key == configuration.RESOURCE_QOS:
            found += _quality(path, values, pairs=pairs)
        elif key in _SIMPLE:
            ranges, belonging = _SIMPLE[key]
            found += _ranged(path, values, ranges)
            found += _paired(path, values, belonging) if pairs else ()
    return found


def unknown_words(key: str, path: str, values: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the words in what is said under a key that name nothing.

    Readers take such a word for the default or for none at all. An empty word says nothing, except
    where the schema of the object that it goes to excludes it.
    """
    match key:
        case configuration.COLOCATION:
            yield from _named(path, values, COLLECTION_WORDS, empty=False)
        case configuration.RESOURCE_THRESHOLD:
            yield from _named(path, values, THRESHOLD_WORDS)
        case configuration.HOST_APPLICATION:
            applications = values.get("applications") or ()
            yield from unknown_host_words(f"{path}.applications", applications)
        case configuration.RESOURCE_QOS:
            yield from _named(f"{path}.policies", values.get("policies") or {}, POLICY_WORDS)
            for name, spelling in itertools.product(_CLASSES, _BLOCK_IO):
                blocks = ((values.get(name) or {}).get(spelling) or {}).get("blocks") or ()
                for index, one in enumerate(blocks):
                    place = f"{path}.{name}.{spelling}.blocks[{index}]"
                    yield from _named(place, one, BLOCK_WORDS)


def unknown_host_words(path: str, applications: Iterable[Mapping[str, Any]]) -> Iterator[Fault]:
    """Yield the words of host applications that name nothing."""
    for index, one in enumerate(applications):
        yield from _named(f"{path}[{index}]", one, HOST_WORDS)


def allowed(key: str, field: str) -> Range | None:
    """Return the values that a field under a key may have, where it has limits."""
    if key == configuration.RESOURCE_QOS:
        return next((part[field] for part in QUALITY.values() if field in part), None)
    return _SIMPLE[key][0].get(field) if key in _SIMPLE else None


def flaw(merged: Mapping[str, Any], path: str = configuration.COLOCATION) -> Fault | None:
    """Return the first value of a merged colocation strategy that has no meaning."""
    words = _named(path, merged, COLLECTION_WORDS, empty=False)
    return next(itertools.chain(words, _ranged(path, merged, _MERGED)), None)


def _named(
    path: str, values: Mapping[str, Any], words: Words, *, empty: bool = True
) -> Iterator[Fault]:
    for name, known in words.items():
        value = values.get(name)
        if value is not None and value not in known and (value or not empty):
            note = f"is {shown(value)}, must be one of {', '.join(known)}"
            yield Fault(f"{path}.{name}", f"{note}; correct it or leave it out")


def _ranged(path: str, values: Mapping[str, Any], ranges: Mapping[str, Range]) -> Iterator[Fault]:
    for name, limits in ranges.items():
        value = values.get(name)
        if value is not None and not limits.holds(value):
            note = f"is {shown(value)}, must be {limits}; correct it or leave it out"
            yield Fault(f"{path}.{name}", note)


def _paired(path: str, values: Mapping[str, Any], pairs: tuple[Pair, ...]) -> Iterator[Fault]:
    for low_name, high_name in pairs:
        low, high = values.get(low_name), values.get(high_name)
        if low is None and high is None:
            continue
        if low is None or high is None:
            given, missing = (low_name, high_name) if high is None else (high_name, low_name)
            note = f"is {values[given]} without {missing}; give both, the lower one first, or none"
            yield Fault(f"{path}.{given}", note)
        elif low >= high:
            yield Fault(f"{path}.{low_name}", f"is {low}, must be less than {high_name} {high}")
            yield Fault(f"{path}.{high_name}", f"is {high}, must be more than {low_name} {low}")


def _quality(path: str, values: Mapping[str, Any], *, pairs: bool) -> Iterator[Fault]:
    for name in _CLASSES:
        for part, ranges in QUALITY.items():
            settings = (values.get(name) or {}).get(part) or {}
            yield from _ranged(f"{path}.{name}.{part}", settings, ranges)
            if pairs and part == "resctrlQOS":
                yield from _paired(f"{path}.{name}.{part}", settings, _CACHE_PAIRS)
