"""What the live switches of the cluster say to the agent of one node. Pure.

The keys are those of one ConfigMap: `agent` for everything, `agent.evictions`, one for each
strategy (`agent.cpu-burst`), and for parts of the cluster `agent.namespaces.off`,
`agent.classes.observe`, `agent.nodes.off` and the like. Those of other processes are passed over.
"""

import enum
import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from api.koordinator.metadata import qos

KEY: Final = "agent"
EVICTIONS: Final = "evictions"
NRI: Final = "nri"
"""The switch of what the agent answers container runtimes."""
_NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_./-]{0,315}[A-Za-z0-9])?")
_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_CLASSES: Final = frozenset(one.value for one in qos.QoS if one.value)
Selector = Mapping[str, str | None]
"""Labels that a node must have; None where any value will do."""


class Mode(enum.StrEnum):
    """How far a strategy may go."""

    ENFORCE = "enforce"
    OBSERVE = "observe"
    OFF = "off"


_ORDER: Final = (Mode.OFF, Mode.OBSERVE, Mode.ENFORCE)


def least(one: Mode, other: Mode) -> Mode:
    """Return the mode that goes less far."""
    return one if _ORDER.index(one) <= _ORDER.index(other) else other


class Here(msgspec.Struct, frozen=True):
    """How far the agent of one node may go."""

    agent: Mode = Mode.ENFORCE
    """No strategy goes further."""
    evictions: Mode = Mode.ENFORCE
    """No eviction goes further."""
    strategies: Mapping[str, Mode] = msgspec.field(default_factory=dict)
    """Single strategies by name, instead of what the settings say."""
    namespaces: Mapping[str, Mode] = msgspec.field(default_factory=dict)
    classes: Mapping[str, Mode] = msgspec.field(default_factory=dict)
    key: str = KEY
    """The key that limits the agent as a whole."""


class Live(msgspec.Struct, frozen=True):
    """What the switches say, as far as it could be understood."""

    accepted: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The texts that count, by key."""
    problems: tuple[str, ...] = ()
    """What could not be understood; it changes nothing."""
    everywhere: Here = Here()
    """What holds on nodes that no selector names."""
    nodes: tuple[tuple[Selector, str, Mode], ...] = ()
    """Labels of nodes, the key that names them, and how far these nodes go."""

    def of_node(self, labels: Mapping[str, str]) -> Here:
        """Return what holds on a node with these labels."""
        found = self.everywhere
        for selector, key, mode in self.nodes:
            if least(mode, found.agent) is not found.agent and _matches(selector, labels):
                found = msgspec.structs.replace(found, agent=mode, key=key)
        return found


def read(data: Mapping[str, str] | None, before: Live, strategies: Collection[str]) -> Live:
    """Read all switches; a key that makes no sense stands as it stood before."""
    accepted: dict[str, str] = {}
    problems = []
    for key, text in sorted((data or {}).items()):
        if key != KEY and not key.startswith(f"{KEY}."):
            continue
        problem = _problem(key, text, strategies)
        if problem is None:
            accepted[key] = text
            continue
        problems.append(problem)
        if key in before.accepted:
            accepted[key] = before.accepted[key]
    return _made(accepted, tuple(problems))


def _problem(key: str, text: str, strategies: Collection[str]) -> str | None:
    """Say what is wrong with one key, None when nothing is."""
    what, _, word = key.removeprefix(KEY).removeprefix(".").partition(".")
    reader = _LISTS.get(what)
    if reader is not None:
        if word not in (Mode.OFF, Mode.OBSERVE):
            return f"{key}: write {KEY}.{what}.off or {KEY}.{what}.observe"
        try:
            reader(text)
        except ValueError as error:
            return f"{key}: {error}"
        return None
    if word or what not in ("", EVICTIONS, NRI, *strategies):
        known = ", ".join((EVICTIONS, NRI, *sorted(_LISTS), *sorted(strategies)))
        return f"{key}: there is no such switch; after {KEY}. comes one of {known}"
    if _word(text) is None:
        return f"{key} is {text[:40]!r}: write {', '.join(Mode)}"
    return None


def _made(accepted: Mapping[str, str], problems: tuple[str, ...]) -> Live:
    words: dict[str, Mode] = {}
    lists: dict[str, dict[str, Mode]] = {"namespaces": {}, "classes": {}}
    nodes: list[tuple[Selector, str, Mode]] = []
    for key, text in accepted.items():
        what, _, word = key.removeprefix(KEY).removeprefix(".").partition(".")
        if what == "nodes":
            nodes.extend((one, key, Mode(word)) for one in _selectors(text))
        elif what in _NAMED:
            for name in _NAMED[what](text):
                lists[what][name] = least(Mode(word), lists[what].get(name, Mode.ENFORCE))
        else:
            words[what] = _word(text) or Mode.ENFORCE
    agent, evictions = words.pop("", Mode.ENFORCE), words.pop(EVICTIONS, Mode.ENFORCE)
    everywhere = Here(agent, evictions, words, lists["namespaces"], lists["classes"])
    return Live(accepted, problems, everywhere, tuple(nodes))


def _word(text: str) -> Mode | None:
    try:
        return Mode(text.strip().lower())
    except ValueError:
        return None


def _names(text: str) -> list[str]:
    found = text.replace(",", " ").split()
    for name in found:
        if not _NAMESPACE.fullmatch(name):
            raise ValueError(f"{name[:70]!r} is no name of a namespace")
    return found


def _classes(text: str) -> list[str]:
    found = text.replace(",", " ").split()
    for name in found:
        if name not in _CLASSES:
            raise ValueError(f"{name[:40]!r} is none of {', '.join(sorted(_CLASSES))}")
    return found


def _selectors(text: str) -> list[Selector]:
    """Read `pool=batch,zone`: all on one line must hold, any line will do."""
    found: list[Selector] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        selector: dict[str, str | None] = {}
        for part in line.split(","):
            key, equals, value = (word.strip() for word in part.partition("="))
            if not _LABEL.fullmatch(key) or not _VALUE.fullmatch(value):
                raise ValueError(f"{part[:70]!r} is no label; write key=value, or key for any")
            selector[key] = value if equals else None
        found.append(selector)
    return found


def _matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    return all(key in labels and value in (None, labels[key]) for key, value in selector.items())


_NAMED: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "classes": _classes,
    "namespaces": _names,
}
_LISTS: Final[Mapping[str, Callable[[str], object]]] = {**_NAMED, "nodes": _selectors}
