"""The configuration map of the cluster, read key by key; what cannot be read changes nothing."""

import enum
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from api.koordinator.settings import configuration, layers, slo
from api.wire import quantity
from domain.cluster_settings import documents, value_limits
from domain.cluster_settings.value_limits import Fault
from manager.cluster_settings import effective


class Effect(enum.StrEnum):
    """What becomes of a value that is wrong."""

    KEPT = "kept"
    """The whole key says what it said before."""
    IGNORED = "ignored"
    """The entry it is in has no effect of its own."""
    USED = "used"
    """It is used all the same, though admission would refuse it."""


class Problem(NamedTuple):
    """What is wrong under a key, where, and what becomes of it."""

    key: str
    path: str
    """The place in the key's document, beginning with the key."""
    note: str
    effect: Effect

    @property
    def sentence(self) -> str:
        """What the author of the configuration map should read."""
        return f"{self.path}: {self.note}"


class Reading(NamedTuple):
    """What now holds, and what the author of the configuration map should know."""

    settings: effective.ClusterSettings
    problems: tuple[Problem, ...] = ()


def read(previous: effective.ClusterSettings | None, data: Mapping[str, str] | None) -> Reading:
    """Read a configuration map; where there is none, the defaults hold until there is one."""
    if data is None:
        return Reading(effective.ClusterSettings(effective.DEFAULTS, doubtful=True))
    before = effective.DEFAULTS if previous is None else previous.sections
    sections: dict[str, effective.Section] = {}
    problems: list[Problem] = []
    for key in effective.DEFAULTS:
        try:
            sections[key], found = _section(key, data.get(key))
            problems += found
        except documents.Unreadable as wrong:
            sections[key] = before[key]
            problems += [Problem(key, *fault, Effect.KEPT) for fault in wrong.faults]
    bad = frozenset(problem.key for problem in problems if problem.effect is Effect.KEPT)
    failed = configuration.COLOCATION in bad
    available = not failed or (previous is not None and previous.available)
    unread = bad if previous is None else bad & previous.unread
    settings = effective.ClusterSettings(sections, available, doubtful=failed, unread=unread)
    return Reading(settings, tuple(problems))


def _section(key: str, written: str | None) -> tuple[effective.Section, list[Problem]]:
    """Read the value of one key, with what has no effect or should not have any."""
    default = effective.DEFAULTS[key]
    if written is None or (key == configuration.COLOCATION and not written):
        return default, []
    document = documents.parse(key, written)
    values = _laid(key, default.cluster, document.cluster or {})
    if key == configuration.COLOCATION and (flaw := value_limits.flaw(values)):
        raise documents.Unreadable(flaw, limits=True)
    problems = [
        Problem(key, *fault, Effect.USED)
        for fault in value_limits.faults(key, document.parts(), pairs=False)
    ]
    chosen = []
    for entry in document.entries:
        if entry.selector is not None:
            merged, fault = _entry(key, values, entry)
            chosen.append(effective.Entry(entry.selector, merged))
        else:
            fault = entry.fault or Fault(entry.path, "selects no node: it has no nodeSelector")
        if fault is not None:
            problems = [one for one in problems if one.path != fault.path]
            problems.append(Problem(key, *fault, Effect.IGNORED))
    return effective.Section(values, tuple(chosen)), problems


def _entry(
    key: str, values: Mapping[str, Any], entry: documents.Entry
) -> tuple[Mapping[str, Any], Fault | None]:
    if not entry.values and key != configuration.HOST_APPLICATION:
        return values, None
    merged = _laid(key, values, entry.values)
    if key == configuration.COLOCATION:
        fault = value_limits.flaw(merged, entry.path)
        if fault is not None:
            note = f"{fault.note}; the cluster's settings hold instead"
            return values, Fault(fault.path, note)
    return merged, None


def _laid(key: str, under: Mapping[str, Any], over: Mapping[str, Any]) -> Mapping[str, Any]:
    if key == configuration.HOST_APPLICATION:
        return {"applications": over.get("applications", [])}
    if key == configuration.SYSTEM:
        # What is not said about bandwidth is zero, on every level.
        over = {**over, effective.BANDWIDTH: quantity.canonical(over.get(effective.BANDWIDTH, "0"))}
    if key == configuration.RESOURCE_QOS:
        over = dict(_folded(over))
    if key != configuration.COLOCATION:
        over = layers.said(over)
    return layers.merge(under, over)


def _folded(classes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fold the other spelling of block devices."""
    for name, settings in classes.items():
        folded, _ = slo.fold_block_io(settings)
        folded.pop(slo.BLOCK_IO_SHORTHAND, None)
        yield name, folded
