r"""The part of kubectl's JSONPath that answers of the commands need. Pure.

Text, ``{.a.b}``, ``{.a[0]}``, ``{.a[-1]}``, ``{.a[*].b}``, ``{['a.b']}``, ``{"\n"}``,
``{.items[?(@.name=="web")].node}`` and ``{range .items[*]}…{end}``. A filter compares a field with
a text, a number, true or false by ==, !=, <, <=, > or >=, or asks whether the field is there.
"""

import ast
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

_PARTS: Final = re.compile(
    r"\{(?P<inside>(?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|[^{}'\"])*)\}|(?P<text>[^{}]+)"
)
_STEP: Final = re.compile(
    r"\.(?P<name>[A-Za-z0-9_/-]+)|\[(?P<index>-?[0-9]+|\*)\]|\['(?P<quoted>[^']+)'\]"
    r"|\[\?\((?P<filter>(?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|[^'\"()])+)\)\]"
)
_FILTER: Final = re.compile(
    r"\s*@(?P<field>[^\s=!<>]*(?:\['[^']+'\][^\s=!<>]*)*)\s*"
    r"(?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<value>.*\S)\s*)?"
)
_SIGNS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS: Final = {"true": True, "false": False}
_LONGEST: Final = 4096


class Filter(NamedTuple):
    """Which items are meant: those where a field is there, or compares with a value."""

    field: "tuple[Step, ...]"
    sign: str
    value: str | float | bool | None

    def takes(self, item: Any) -> bool:
        """Whether an item is meant; what cannot be compared is not, unless it has to differ."""
        found = next(_values(self.field, item), None)
        if not self.sign:
            return found is not None
        if _sort(found) != _sort(self.value):
            return self.sign == "!="
        return _SIGNS[self.sign](found, self.value)


Step = str | int | Filter | None
"""A field, an index, some of the items, or None for all of them."""


class Part(NamedTuple):
    """Text, or a path, or a block that is repeated for each of what its path finds."""

    text: str = ""
    path: tuple[Step, ...] | None = None
    block: "tuple[Part, ...] | None" = None


def parse(template: str) -> tuple[Part, ...]:
    """Read a template; ValueError says which part makes no sense."""
    if len(template) > _LONGEST:
        raise ValueError(f"a JSONPath of more than {_LONGEST} characters")
    if template and "{" not in template:
        template = f"{{{template}}}"
    blocks: list[list[Part]] = [[]]
    ranges: list[tuple[Step, ...]] = []
    at = 0
    while at < len(template):
        match = _PARTS.match(template, at)
        if match is None:
            raise ValueError(f"JSONPath: {template[at : at + 40]!r} has no end or no beginning")
        at = match.end()
        inside = (match["inside"] or "").strip()
        if match["text"] is not None:
            blocks[-1].append(Part(match["text"]))
        elif inside.startswith("range "):
            ranges.append(_path(inside.removeprefix("range ").strip()))
            blocks.append([])
        elif inside == "end" and ranges:
            block = tuple(blocks.pop())
            blocks[-1].append(Part(path=ranges.pop(), block=block))
        else:
            blocks[-1].append(_part(inside))
    if ranges:
        raise ValueError("JSONPath: {range} without {end}")
    return tuple(blocks[0])


def _part(inside: str) -> Part:
    if inside[:1] in ("'", '"'):
        try:
            return Part(str(ast.literal_eval(inside)))
        except (ValueError, SyntaxError):
            raise ValueError(f"JSONPath: {inside} is no text") from None
    return Part(path=_path(inside))


def _path(text: str) -> tuple[Step, ...]:
    rest = text.removeprefix("$").removeprefix("@")
    rest = rest if not rest or rest[0] in ".[" else f".{rest}"
    steps: list[Step] = []
    at = 1 if rest == "." else 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None:
            raise ValueError(
                f"JSONPath: {text}: {rest[at:]!r} is not supported; use -o json and jq"
            )
        at = match.end()
        if match["filter"] is not None:
            steps.append(_filter(match["filter"]))
        elif match["index"] is not None:
            steps.append(None if match["index"] == "*" else int(match["index"]))
        else:
            steps.append(match["name"] or match["quoted"])
    return tuple(steps)


def _filter(text: str) -> Filter:
    match = _FILTER.fullmatch(text)
    if match is None:
        raise ValueError(
            f'JSONPath: filter {text!r} is not supported; write [?(@.field=="text")], '
            "or use -o json and jq"
        )
    value = match["value"]
    return Filter(_path(match["field"]), match["sign"] or "", value and _literal(value))


def _literal(text: str) -> str | float | bool:
    if text in _WORDS:
        return _WORDS[text]
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        found = None
    if isinstance(found, str | int | float) and not isinstance(found, bool):
        return found
    raise ValueError(f"JSONPath: {text} is neither a text in quotes nor a number, true or false")


def _sort(value: Any) -> type:
    """Return what a value may be compared with: texts, numbers and truths among themselves."""
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def found(parts: Sequence[Part], body: Any) -> str:
    """Return what a template makes of an answer; what is not there is left out."""
    said = []
    for part in parts:
        if part.path is None:
            said.append(part.text)
        elif part.block is None:
            said.append(" ".join(_text(one) for one in _values(part.path, body)))
        else:
            said += [found(part.block, one) for one in _values(part.path, body)]
    return "".join(said)


def _values(path: Sequence[Step], body: Any) -> Iterator[Any]:
    if not path:
        yield body
        return
    step, rest = path[0], path[1:]
    if step is None or isinstance(step, Filter):
        inner = body.values() if isinstance(body, dict) else body
        for one in inner if isinstance(body, dict | list | tuple) else ():
            if step is None or step.takes(one):
                yield from _values(rest, one)
    elif isinstance(step, int):
        if isinstance(body, list | tuple) and -len(body) <= step < len(body):
            yield from _values(rest, body[step])
    elif isinstance(body, dict) and step in body:
        yield from _values(rest, body[step])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
