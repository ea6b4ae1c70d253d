"""The configuration map of the cluster, read key by key; what cannot be read changes nothing."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from api import base, configuration, meta, quantity
from manager import cluster, strategy

_FLAT: Final = frozenset(
    {
        configuration.COLOCATION,
        configuration.HOST_APPLICATION,
        configuration.CPU_NORMALIZATION,
        configuration.RESOURCE_AMPLIFICATION,
    }
)
"""Keys whose cluster settings stand at the top level, beside ``nodeConfigs``."""


class Problem(NamedTuple):
    """What is wrong under a key, and whether the key keeps what it said before."""

    key: str
    note: str
    kept: bool


class Reading(NamedTuple):
    """What now holds, and what the author of the configuration map should know."""

    settings: cluster.ClusterSettings
    problems: tuple[Problem, ...] = ()


def read(previous: cluster.ClusterSettings | None, data: Mapping[str, str] | None) -> Reading:
    """Read a configuration map; where there is none, the defaults hold until there is one."""
    if data is None:
        return Reading(cluster.ClusterSettings(cluster.DEFAULTS, doubtful=True))
    before = cluster.DEFAULTS if previous is None else previous.sections
    sections: dict[str, cluster.Section] = {}
    problems: list[Problem] = []
    for key in cluster.DEFAULTS:
        try:
            sections[key], notes = _section(key, data.get(key))
            problems += [Problem(key, note, kept=False) for note in notes]
        except ValueError as error:
            sections[key] = before[key]
            problems.append(Problem(key, str(error), kept=True))
    failed = any(problem.kept for problem in problems if problem.key == configuration.COLOCATION)
    available = not failed or (previous is not None and previous.available)
    bad = frozenset(problem.key for problem in problems if problem.kept)
    unread = bad if previous is None else bad & previous.unread
    settings = cluster.ClusterSettings(sections, available, doubtful=failed, unread=unread)
    return Reading(settings, tuple(problems))


def _section(key: str, written: str | None) -> tuple[cluster.Section, list[str]]:
    """Read the value of one key, with notes on entries that have no effect."""
    default = cluster.DEFAULTS[key]
    if written is None or (key == configuration.COLOCATION and not written):
        return default, []
    document = base.parsed(written, key)
    if document is None:
        return default, []
    notes: list[str] = []
    # A selector that cannot be evaluated costs its entry, not the whole key.
    selected = list(_selectors(document, notes))
    wire = base.decoded(configuration.MODELS[key], base.encoded(document), key).wire()
    entries = wire.pop("nodeStrategies", None) or wire.pop("nodeConfigs", None) or []
    values = _laid(key, default.cluster, wire if key in _FLAT else wire.get("clusterStrategy", {}))
    if key == configuration.COLOCATION and (flaw := strategy.flaw(values)):
        raise ValueError(f"{key}: {flaw}")
    pairs = zip(selected, entries, strict=True)
    chosen = tuple(
        cluster.Entry(selector, _entry(key, values, entry, notes))
        for selector, entry in pairs
        if selector is not None
    )
    return cluster.Section(values, chosen), [f"{key}: {note}" for note in notes]


def _selectors(document: Any, notes: list[str]) -> Iterator[meta.LabelSelector | None]:
    """Take the selectors out of a document; None for entries that select nothing."""
    for index, entry in enumerate(_found(document, "nodeStrategies", "nodeConfigs") or ()):
        if not isinstance(entry, dict):
            yield None
            continue
        name = next((key for key in entry if key.casefold() == "nodeselector"), None)
        written = entry.pop(name) if name is not None else None
        if written is None:
            yield None
            continue
        try:
            yield base.validated(meta.LabelSelector, written, f"entry {index}: nodeSelector")
        except base.ReadError as error:
            notes.append(f"{error}; the entry is left out")
            yield None


def _found(document: Any, *names: str) -> list[Any] | None:
    folded = {name.casefold() for name in names}
    items = document.items() if isinstance(document, dict) else ()
    return next(
        (value for key, value in items if key.casefold() in folded and isinstance(value, list)),
        None,
    )


def _entry(
    key: str, values: Mapping[str, Any], entry: Mapping[str, Any], notes: list[str]
) -> Mapping[str, Any]:
    over = {name: value for name, value in entry.items() if name != "name"}
    if not over and key != configuration.HOST_APPLICATION:
        return values
    merged = _laid(key, values, over)
    if key == configuration.COLOCATION and (flaw := strategy.flaw(merged)):
        notes.append(f"entry {entry.get('name', '')}: {flaw}; the cluster's settings hold instead")
        return values
    return merged


def _laid(key: str, under: Mapping[str, Any], over: Mapping[str, Any]) -> Mapping[str, Any]:
    if key == configuration.HOST_APPLICATION:
        return {"applications": over.get("applications", [])}
    if key == configuration.SYSTEM:
        # What is not said about bandwidth is zero, on every level.
        over = {**over, cluster.BANDWIDTH: quantity.canonical(over.get(cluster.BANDWIDTH, "0"))}
    if key == configuration.RESOURCE_QOS:
        over = {name: _folded(value) for name, value in over.items()}
    if key != configuration.COLOCATION:
        over = configuration.said(over)
    return configuration.merge(under, over)


def _folded(settings: Any) -> Any:
    if not isinstance(settings, Mapping) or "blkIOQOS" not in settings:
        return settings
    folded = dict(settings)
    folded.setdefault("blkioQOS", folded.pop("blkIOQOS"))
    return folded
