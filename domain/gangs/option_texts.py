"""The annotations that declare gangs as values: what can be read of them, and what cannot. Pure."""

import enum
import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from api import names
from api.koordinator.metadata import annotations
from api.wire import base, durations

MOST_GANGS: Final = 64
"""Gangs in one gang group; a longer list counts as no list."""
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?", re.ASCII)
_MOST_TEXT: Final = 4 << 10
"""Characters of one annotation that are read; the extender keeps no longer ones of a pod."""


class Mode(enum.Enum):
    """What the failure of one member means for the others."""

    STRICT = "Strict"
    NON_STRICT = "NonStrict"


class MatchPolicy(enum.Enum):
    """Which members count towards the minimum when one is about to be bound."""

    ONLY_WAITING = "only-waiting"
    WAITING_AND_RUNNING = "waiting-and-running"
    ONCE_SATISFIED = "once-satisfied"


class Repair(enum.Enum):
    """What happens to a gang that falls below its minimum after it was bound."""

    NONE = "none"
    REPLACE = "replace"
    RESTART = "restart"


class GatherRule(msgspec.Struct, frozen=True):
    """One rule of gatherStrategy: how strictly a gang stays inside one domain of a layer."""

    layer: str
    must: bool
    """MustGather; otherwise PreferGather."""
    multiple: int = 0
    """podCountMultiple: pods per domain of this layer are a multiple of it; below 2 of any."""


class Topology(msgspec.Struct, frozen=True):
    """network-topology-spec of a gang."""

    rules: tuple[GatherRule, ...] = ()


def is_name(text: str) -> bool:
    """Whether an object can have this name."""
    return _NAME.fullmatch(text) is not None


def text(values: Mapping[str, str], key: str) -> str:
    """Return an annotation or label, empty where it is missing or too long."""
    found = values.get(key)
    return found if isinstance(found, str) and len(found) <= _MOST_TEXT else ""


def int32(text: str) -> int | None:
    """Return a decimal integer of 32 bits, None where it is none."""
    try:
        return annotations.integer({"": text}, "")
    except base.ReadError:
        return None


def seconds(notes: Mapping[str, str]) -> float:
    """Return the waiting time in seconds, 0 where it is missing or unreadable."""
    return duration(notes[names.ANNOTATION_GANG_WAITING_TIME]) or 0.0


def duration(text: str) -> float | None:
    """Return a Go duration in seconds, None where it is none."""
    try:
        return durations.seconds(text)
    except durations.DurationError:
        return None


def gang_ids(text: str) -> tuple[str, ...] | None:
    """Return the ids of a gang group sorted, None where there is no list of such ids."""
    try:
        found = annotations.GANG_GROUPS.read({names.ANNOTATION_GANG_GROUPS: text})
    except base.ReadError:
        return None
    if not found or len(found) > MOST_GANGS or not all(_is_id(one) for one in found):
        return None
    return tuple(sorted(found))


def _is_id(text: str) -> bool:
    namespace, slash, name = text.partition("/")
    return bool(slash and is_name(namespace) and is_name(name))


def topology(text: str) -> Topology | None:
    """Return a network-topology-spec, None where it is none."""
    try:
        found = annotations.GANG_NETWORK_TOPOLOGY.read(
            {names.ANNOTATION_GANG_NETWORK_TOPOLOGY: text}
        )
    except base.ReadError:
        return None
    if found is None:
        return None
    return Topology(
        tuple(
            GatherRule(one.layer, one.strategy == "MustGather", one.pod_count_multiple)
            for one in found.gather_strategy
        )
    )


def faults(namespace: str, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield keys of annotations that cannot be read as written, each with what holds instead."""
    for key, known in _CHOICES.items():
        found = values.get(key)
        if found and found not in known:
            words = ", ".join(known)
            yield key, f'"{str(found)[:80]}" is none of {words}; the default is used'
    for key, read in _READERS.items():
        if values.get(key) and read(text(values, key)) is None:
            yield key, f"{_READABLE[key]}; it is ignored"
    listed = gang_ids(text(values, names.ANNOTATION_GANG_GROUPS))
    if any(not one.startswith(f"{namespace}/") for one in listed or ()):
        yield (
            names.ANNOTATION_GANG_GROUPS,
            (
                "names a gang of another namespace; that one starts with this one only if it lists "
                "the same gangs"
            ),
        )


POLICIES: Final = frozenset(one.value for one in MatchPolicy)
REPAIRS: Final = frozenset(one.value for one in Repair)
_CHOICES: Final = {
    names.ANNOTATION_GANG_MODE: tuple(one.value for one in Mode),
    names.ANNOTATION_GANG_MATCH_POLICY: tuple(one.value for one in MatchPolicy),
    names.ANNOTATION_POD_GROUP_MATCH_POLICY: tuple(one.value for one in MatchPolicy),
    names.ANNOTATION_GANG_REPAIR: tuple(one.value for one in Repair),
}
_READERS: Final = {
    names.ANNOTATION_GANG_TOTAL: int32,
    names.ANNOTATION_GANG_WAITING_TIME: duration,
    names.ANNOTATION_GANG_GROUPS: gang_ids,
    names.ANNOTATION_GANG_NETWORK_TOPOLOGY: topology,
}
_READABLE: Final = {
    names.ANNOTATION_GANG_TOTAL: "is no decimal integer of 32 bits",
    names.ANNOTATION_GANG_WAITING_TIME: 'is no duration such as "90s" or "10m"',
    names.ANNOTATION_GANG_GROUPS: (
        f'is no JSON list of 1 to {MOST_GANGS} gangs such as ["team/a", "team/b"], in 4 KiB'
    ),
    names.ANNOTATION_GANG_NETWORK_TOPOLOGY: (
        'is no JSON such as {"gatherStrategy": [{"layer": "rack", "strategy": "MustGather"}]}'
    ),
}
