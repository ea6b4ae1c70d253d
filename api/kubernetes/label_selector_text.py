"""Label selectors as text, as in `kubectl get -l`: parsed to requirements, and matched."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from api.kubernetes import selectors

_SET: Final = re.compile(r"(?P<key>[^\s!=,()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)")
_EQUAL: Final = re.compile(r"(?P<key>[^\s!=,()]+)\s*(?P<operator>==|!=|=)\s*(?P<value>[^\s!=,()]*)")
_EXISTS: Final = re.compile(r"(?P<not>!?)\s*(?P<key>[^\s!=,()]+)")
_WORD: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_./]*)?")


class Requirement(NamedTuple):
    """One condition on a label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


def parse(text: str) -> tuple[Requirement, ...]:
    """Return the requirements of a selector; SelectorError names the part that is none."""
    found = []
    for part in _split(text):
        made = _requirement(part)
        if made is None or not all(map(_WORD.fullmatch, (made.key, *made.values))):
            raise selectors.SelectorError(f"unable to parse requirement: {part!r} in {text!r}")
        found.append(made)
    return tuple(found)


def matches(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Tell whether labels satisfy all requirements; none are satisfied by everything."""
    return all(
        selectors.satisfied(labels.get(one.key), one.operator, one.values) for one in requirements
    )


def _requirement(part: str) -> Requirement | None:
    if match := _SET.fullmatch(part):
        values = tuple(value.strip() for value in match["values"].split(","))
        return Requirement(match["key"], "In" if match["operator"] == "in" else "NotIn", values)
    if match := _EQUAL.fullmatch(part):
        operator = "NotIn" if match["operator"] == "!=" else "In"
        return Requirement(match["key"], operator, (match["value"],))
    if match := _EXISTS.fullmatch(part):
        return Requirement(match["key"], "DoesNotExist" if match["not"] else "Exists")
    return None


def _split(text: str) -> list[str]:
    """Split at commas that are not inside parentheses."""
    parts = re.split(r",(?![^(]*\))", text)
    return [part.strip() for part in parts if part.strip()]
