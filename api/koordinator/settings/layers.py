"""How settings lie over others, as every strategy of the configuration map does."""

from collections.abc import Mapping
from typing import Any, Final

# Fields that are maps, not structures: what one key holds is replaced as a whole.
_MAPS: Final = frozenset({"extensions", "ratioModel"})


def merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one JSON object over another: objects merge, lists merge by position, null is unset."""
    merged = dict(under)
    for name, value in over.items():
        below = merged.get(name)
        if value is None:
            continue
        if name in _MAPS and isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[name] = {**below, **value}
        else:
            merged[name] = _merged(below, value)
    return merged


def _merged(under: Any, over: Any) -> Any:
    if isinstance(under, Mapping) and isinstance(over, Mapping):
        return merge(under, over)
    if isinstance(under, list) and isinstance(over, list):
        kept = under[: len(over)]
        return [_merged(*pair) for pair in zip(kept, over, strict=False)] + over[len(kept) :]
    return over


def said(value: Any) -> Any:
    """Leave out empty texts and lists, which in strategies mean the same as nothing."""
    if isinstance(value, Mapping):
        return {name: said(inner) for name, inner in value.items() if inner not in ("", [])}
    return [said(inner) for inner in value] if isinstance(value, list) else value
