"""The part of JSONPath that printer columns use: fields, indices, wildcards and filters."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_STEP = re.compile(
    r"""\.(?P<field>(?:[^.\[\\]|\\.)+)
      | \[\?\(@\.(?P<key>[^=!\s]+)\s*==\s*["'](?P<wanted>[^"']*)["']\s*\)\]
      | \[["'](?P<quoted>[^"']+)["']\]
      | \[(?P<index>-?\d+)\]
      | (?P<all>\[\*\])""",
    re.VERBOSE,
)


class PathError(ValueError):
    """A path that this part of JSONPath cannot express."""


def find(value: Any, path: str) -> list[Any]:
    """Return everything that a path names, in order."""
    position, found = 0, [value]
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise PathError(f"cannot read the JSON path {path!r} at {path[position:]!r}")
        position = match.end()
        found = [inner for one in found for inner in _step(one, match)]
    return found


def _step(value: Any, match: re.Match[str]) -> Iterator[Any]:
    field = match["field"] or match["quoted"]
    if field == "*":
        yield from value.values() if isinstance(value, Mapping) else value
    elif field is not None:
        name = re.sub(r"\\(.)", r"\1", field)
        if isinstance(value, Mapping) and name in value:
            yield value[name]
    elif not isinstance(value, list):
        return
    elif match["all"]:
        yield from value
    elif match["index"] is not None:
        index = int(match["index"])
        if -len(value) <= index < len(value):
            yield value[index]
    else:
        for item in value:
            if isinstance(item, Mapping) and str(item.get(match["key"])) == match["wanted"]:
                yield item
