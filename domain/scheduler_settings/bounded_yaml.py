"""YAML of a ConfigMap as plain JSON values, read within bounds.

Nothing but mappings with text keys, lists, texts, numbers, booleans and null comes out. Aliases,
tags and repeated keys are refused: the first two let a short text stand for a huge one, and of a
repeated key it is unknown which was meant.
"""

import math
from typing import Any, Final

import yaml

_BYTES: Final = 64 << 10
"""Ten times the longest configuration that is in use."""
_DEEPEST: Final = 24
_PARTS: Final = 10_000
_LONGEST_NUMBER: Final = 64

_C_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNREADABLE: Final = (yaml.YAMLError, ValueError, OverflowError, RecursionError)
_PLAIN: Final = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str")
)


class YamlError(ValueError):
    """A text that is no YAML, or more of it than is read; says which and where."""


class _Loader(_C_LOADER):  # type: ignore[misc, valid-type]  # one of two, chosen at start
    """Makes plain values only."""


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        where = _place(key_node.start_mark)
        if not isinstance(key, str):
            raise YamlError(f"{where}: a key is no text; quote it")
        if key in found:
            raise YamlError(f"{where}: {key[:80]} is there twice; remove one")
        found[key] = loader.construct_object(value_node, deep=True)
    return found


def _number(loader: Any, node: yaml.ScalarNode) -> int | float | str:
    where = f"{_place(node.start_mark)}: {node.value[:_LONGEST_NUMBER]}"
    if ":" in node.value:
        # 1:30 is a number in base 60 by YAML 1.1, and a text to all other readers.
        return str(node.value)
    if len(node.value) > _LONGEST_NUMBER:
        raise YamlError(f"{where}... is too long for a number")
    made = loader.construct_yaml_int if node.tag.endswith("int") else loader.construct_yaml_float
    value: int | float = made(node)
    if isinstance(value, float) and not math.isfinite(value):
        raise YamlError(f"{where} is no finite number")
    return value


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _PLAIN]
    for first, resolvers in _C_LOADER.yaml_implicit_resolvers.items()
}
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:int", _number)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)


def parse(text: str) -> Any:
    """Read one YAML document; YamlError says what is wrong."""
    if len(text) > _BYTES:
        raise YamlError(f"{len(text)} bytes are more than the {_BYTES} that are read")
    try:
        _check(text)
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader, made safer above
    except YamlError:
        raise
    except _UNREADABLE as error:
        raise YamlError(f"is not YAML: {_first_line(error)}") from error


def _check(text: str) -> None:
    """Walk through the text without building anything."""
    depth = documents = 0
    for count, event in enumerate(yaml.parse(text, Loader=_C_LOADER)):
        if count > _PARTS:
            raise YamlError(f"has more than the {_PARTS} parts that are read")
        where = _place(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            raise YamlError(f"{where}: an alias (*) is not read; write the value out")
        if getattr(event, "tag", None) is not None:
            raise YamlError(f"{where}: a tag (!) is not read; remove it")
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise YamlError(f"{where}: is more than {_DEEPEST} levels deep; write it flatter")
        if documents > 1:
            raise YamlError(f"{where}: holds a second document; remove it")


def _place(mark: Any) -> str:
    return "somewhere" if mark is None else f"line {mark.line + 1}"


def _first_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or str(error) or type(error).__name__
    return f"{_place(mark)}: {said}".splitlines()[0][:200]
