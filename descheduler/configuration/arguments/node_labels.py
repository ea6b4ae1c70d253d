"""Label selectors in the form of `kubectl --selector`, as arguments that are texts hold them."""

import re
from collections.abc import Iterator
from typing import Annotated, Final

import pydantic

from domain.pods import label_syntax
from domain.scoring import terms

_LONGEST: Final = 4096
_SET: Final = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL: Final = re.compile(r"(?P<key>[^\s=!]+)\s*(?P<operator>==|=|!=)\s*(?P<values>[^\s=!]*)")
_EXISTS: Final = re.compile(r"(?P<operator>!?)\s*(?P<key>[^\s=!()]+)")
_COMMA: Final = re.compile(r",(?![^()]*\))")
_OPERATORS: Final = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn"}
_REMEDY: Final = "write it as pool=a, pool!=a, pool in (a,b), pool or !pool, separated by commas"


def parse(text: str) -> terms.Selector:
    """Read a selector; a ValueError shows what one looks like."""
    if len(text) > _LONGEST:
        raise ValueError(f"{len(text)} characters are more than the {_LONGEST} that are read")
    return terms.Selector(tuple(_requirements(text)) if text.strip() else ())


def _requirements(text: str) -> Iterator[terms.Requirement]:
    for written in map(str.strip, _COMMA.split(text)):
        found = next(
            (match for form in (_SET, _EQUAL, _EXISTS) if (match := form.fullmatch(written))), None
        )
        if found is None:
            raise ValueError(f"{written[:80]} is no requirement on a label; {_REMEDY}")
        yield _requirement(found)


def _requirement(found: re.Match[str]) -> terms.Requirement:
    parts = found.groupdict()
    key, operator = parts["key"], parts["operator"]
    values = tuple(value.strip() for value in parts.get("values", "").split(","))
    if not label_syntax.is_key(key) or not all(map(label_syntax.is_value, values)):
        raise ValueError(f"{found[0][:80]} has a key or a value that no label has; {_REMEDY}")
    if "values" not in parts:
        return terms.Requirement(key, "DoesNotExist" if operator else "Exists")
    return terms.Requirement(key, _OPERATORS[operator], values)


def _checked(value: str) -> str:
    parse(value)
    return value


NodeSelector = Annotated[str, pydantic.AfterValidator(_checked)]
"""A label selector such as `pool=a,!spot`; empty selects every node."""
