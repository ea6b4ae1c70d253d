"""One page of many rows, as a browser asks for it. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

MOST_ROWS: Final = 200
_LONGEST: Final = 253
_FARTHEST: Final = 10_000_000


class Asked(NamedTuple):
    """Which rows of a page are wanted."""

    text: str = ""
    """Only rows that contain it, in lower case; empty for all."""
    namespace: str = ""
    """Only those of one namespace."""
    kind: str = ""
    """Only those of one kind, as each page counts kinds."""
    offset: int = 0
    limit: int = 50


def asked(query: Mapping[str, str]) -> Asked:
    """Read the query of an address; a ValueError says what is wrong with it."""
    for name in ("q", "namespace", "kind"):
        if len(query.get(name, "")) > _LONGEST:
            raise ValueError(f"{name} has more than {_LONGEST} characters")
    return Asked(
        query.get("q", "").strip().lower(),
        query.get("namespace", "").strip(),
        query.get("kind", ""),
        _number(query, "offset", 0, _FARTHEST),
        max(1, _number(query, "limit", 50, MOST_ROWS)),
    )


def _number(query: Mapping[str, str], name: str, otherwise: int, most: int) -> int:
    written = query.get(name, "")
    if not written:
        return otherwise
    if not (written.isascii() and written.isdigit() and len(written) < 10 and int(written) <= most):
        raise ValueError(f"{name} must be a whole number up to {most}")
    return int(written)


def page(
    rows: Sequence[T], wanted: Asked, shown: Callable[[T], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the rows of one page, and how many there are."""
    part = rows[wanted.offset : wanted.offset + wanted.limit]
    return {"items": [shown(one) for one in part], "total": len(rows), "offset": wanted.offset}
