"""YAML with comments that say why, which the library cannot write."""

from collections.abc import Mapping
from typing import Any

import yaml

Path = tuple[str | int, ...]
Comments = Mapping[Path, str]
"""What to say above which value: keys and list positions from the root."""

_WIDTH = 96
_FLOW_KEYS = 2


def text(document: Mapping[str, Any], comments: Comments) -> str:
    """Return a document as YAML, keys in their order, each comment above what it is about."""
    lines = [*_remark(comments, (), 0), *_mapping(document, comments, (), 0)]
    return "\n".join(lines) + "\n"


def _mapping(value: Mapping[str, Any], comments: Comments, path: Path, indent: int) -> list[str]:
    lines = []
    for key, inner in value.items():
        here = (*path, key)
        lines += _remark(comments, here, indent)
        label = " " * indent + f"{_scalar(key)}:"
        if _nested(inner):
            lines.append(label)
            deeper = indent + 2 if isinstance(inner, Mapping) else indent
            lines += _block(inner, comments, here, deeper)
        else:
            lines.append(f"{label} {_scalar(inner)}")
    return lines


def _block(value: Any, comments: Comments, path: Path, indent: int) -> list[str]:
    if isinstance(value, Mapping):
        return _mapping(value, comments, path, indent)
    lines = []
    for position, inner in enumerate(value):
        here = (*path, position)
        lines += _remark(comments, here, indent)
        lines += _item(inner, comments, here, indent)
    return lines


def _item(value: Any, comments: Comments, path: Path, indent: int) -> list[str]:
    """Return one entry of a list; a remark on its first key goes above the dash."""
    if not isinstance(value, Mapping) or not value or _short(value):
        return [" " * indent + f"- {_scalar(value)}"]
    lines = _mapping(value, comments, path, indent + 2)
    first = next(n for n, line in enumerate(lines) if not line.lstrip().startswith("#"))
    lines[first] = " " * indent + "- " + lines[first][indent + 2 :]
    return lines


def _nested(value: Any) -> bool:
    return isinstance(value, Mapping | list) and bool(value)


def _short(value: Mapping[str, Any]) -> bool:
    return len(value) <= _FLOW_KEYS and not any(
        _nested(inner) or not str(inner).isprintable() for inner in value.values()
    )


def _scalar(value: Any) -> str:
    style = '"' if isinstance(value, str) and not value.isprintable() else None
    shown: str = yaml.safe_dump(
        value,
        default_flow_style=True,
        default_style=style,
        width=1 << 20,
        sort_keys=False,
        allow_unicode=True,
    )
    return shown.strip().removesuffix("...").rstrip()


def _remark(comments: Comments, path: Path, indent: int) -> list[str]:
    said = comments.get(path)
    if said is None:
        return []
    lines: list[str] = []
    for paragraph in said.strip().split("\n"):
        lines += _wrapped(paragraph.strip(), _WIDTH - indent)
    return [" " * indent + f"# {line}".rstrip() for line in lines]


def _wrapped(paragraph: str, width: int) -> list[str]:
    lines, current = [], ""
    for word in paragraph.split(" "):
        if current and len(current) + 1 + len(word) > width - 2:
            lines.append(current)
            current = word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current]
