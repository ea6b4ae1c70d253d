"""Whether a configuration map of cluster settings may be stored as it is written.

Only keys that this change touches are judged: an older fault in another key does not block a
correction.
"""

import dataclasses
import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from api.koordinator.settings import configuration
from domain.cluster_settings import documents, network, overlaps, value_limits
from domain.cluster_settings.value_limits import Fault
from domain.pods import label_syntax

Labels = Mapping[str, str]
_MOST_TOLD: Final = 20


class Reason(enum.StrEnum):
    """What is wrong, in one word; tools depend on the spelling, odd as one is."""

    OVERLAP = "NodeStrategiesOverlap"
    NODE_CONFLICT = "ExistNodeConfict"
    PARSE = "ParseConfigFail"
    INVALID = "ConfigParamInvalid"


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """Why a configuration map is refused: everything that is wrong with one key."""

    reason: Reason
    key: str
    faults: tuple[Fault, ...]
    entries: tuple[str, ...] = ()
    """Names of the entries that stand in each other's way."""


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """A ConfigMap to be stored, and what it replaces."""

    data: Mapping[str, str]
    old: Mapping[str, str]
    nodes: Callable[[], Mapping[str, Labels]]
    """Returns the labels of every node by name; asked only where several entries exist."""
    names_required: bool = False
    """Whether entries need a name of their own."""


def review(question: Question) -> Finding | None:
    """Return the first key that must not be stored, with everything that is wrong with it."""
    crowded: list[documents.Document] = []
    for key in documents.CHECKED:
        written = _changed(question, key)
        if not written:
            continue
        document, finding = _read(key, written)
        if document is None or finding is not None:
            return finding
        finding = _judged(document, question)
        if finding is not None:
            return finding
        if len(document.entries) > 1:
            crowded.append(document)
    conflict = _conflict(crowded, question.nodes()) if crowded else None
    return conflict or _host_applications(question)


def _changed(question: Question, key: str) -> str:
    written = question.data.get(key, "")
    return written if written != question.old.get(key, "") else ""


def _host_applications(question: Question) -> Finding | None:
    """Judge the words alone: of a document that cannot be read, its author is warned."""
    key = configuration.HOST_APPLICATION
    try:
        document = documents.parse(key, _changed(question, key) or "{}")
    except documents.Unreadable:
        return None
    faults = value_limits.faults(key, document.parts())
    return Finding(Reason.INVALID, key, tuple(faults[:_MOST_TOLD])) if faults else None


def _read(key: str, written: str) -> tuple[documents.Document | None, Finding | None]:
    try:
        document = documents.parse(key, written)
    except documents.Unreadable as wrong:
        reason = Reason.INVALID if wrong.limits else Reason.PARSE
        return None, Finding(reason, key, wrong.faults[:_MOST_TOLD])
    return document, None


def _judged(document: documents.Document, question: Question) -> Finding | None:
    key = document.key
    selectors = tuple(_selectors(document))
    if selectors:
        return Finding(Reason.INVALID, key, selectors[:_MOST_TOLD])
    faults = value_limits.faults(key, document.parts())
    if key == configuration.RESOURCE_QOS:
        system, finding = _read(configuration.SYSTEM, question.data.get(configuration.SYSTEM, ""))
        if system is None:
            return _blamed(finding)
        faults += network.faults(document, system)
    if question.names_required:
        faults += _names(document)
    if faults:
        return Finding(Reason.INVALID, key, tuple(faults[:_MOST_TOLD]))
    overlapping = overlaps.imagined(document.entries)
    if not overlapping:
        return None
    note = "could match the same node; make their selectors exclude each other"
    return _overlap(Reason.OVERLAP, document, overlapping, note)


def _blamed(finding: Finding | None) -> Finding:
    """Say why one key is refused because of another."""
    said = finding.faults if finding is not None else ()
    note = f"needs a readable {configuration.SYSTEM} beside it; write one, for instance {{}}"
    fault = Fault(configuration.RESOURCE_QOS, note)
    return Finding(Reason.PARSE, configuration.RESOURCE_QOS, (fault, *said))


def _selectors(document: documents.Document) -> Iterator[Fault]:
    for entry in document.entries:
        path = f"{entry.path}.nodeSelector"
        if entry.fault is not None:
            yield entry.fault
        elif entry.selector is None:
            yield Fault(path, "is missing; write matchLabels or matchExpressions")
        elif entry.selects_all:
            note = "is {}, which means every node; write matchLabels or matchExpressions, or "
            yield Fault(path, f"{note}put the settings into {document.cluster_path}")
        else:
            for sentence in label_syntax.bad_selector(path, entry.selector):
                yield Fault(*sentence.split(": ", 1))


def _names(document: documents.Document) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    for entry in document.entries:
        path = f"{entry.path}.name"
        if not entry.name:
            yield Fault(path, "is missing; entries must have a name here")
        elif entry.name in seen:
            yield Fault(path, f'is "{entry.name}" like that of {seen[entry.name]}; choose another')
        seen.setdefault(entry.name, entry.path)


def _conflict(crowded: list[documents.Document], nodes: Mapping[str, Labels]) -> Finding | None:
    for document in crowded:
        name, found = overlaps.real(document.entries, nodes)
        if found:
            note = f"both match node {name}; make their selectors exclude each other"
            return _overlap(Reason.NODE_CONFLICT, document, found, note)
    return None


def _overlap(
    reason: Reason, document: documents.Document, found: list[documents.Entry], note: str
) -> Finding:
    shown = found[:_MOST_TOLD]
    named = [f"{entry.path} ({entry.name})" if entry.name else entry.path for entry in shown]
    others = ", ".join(named[1:])
    fault = Fault(named[0], f"and {others} {note}")
    return Finding(reason, document.key, (fault,), tuple(entry.name for entry in found))
