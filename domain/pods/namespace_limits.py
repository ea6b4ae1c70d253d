"""What a namespace demands of the cpu and memory of its pods, and where lent resources meet it."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from api import names
from api.wire import quantity

NATIVE: Final = (names.CPU, names.MEMORY)
_COUNTED: Final = frozenset(
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in NATIVE
)
_REQUESTS: Final = ("defaultRequest", "default", "max", "min")
_LIMITS: Final = ("default", "max")
_BOUNDS: Final = ("min", "max", "maxLimitRequestRatio")


class Default(NamedTuple):
    """An amount that a LimitRange gives containers that state none."""

    part: str
    resource: str
    milli: int


class Limits(NamedTuple):
    """What one LimitRange or ResourceQuota demands."""

    defaults: frozenset[Default] = frozenset()
    counted: tuple[str, ...] = ()
    """Names that a ResourceQuota makes every container of a BestEffort pod state."""
    bounds: tuple[str, ...] = ()
    """Bounds of a LimitRange that a pod without cpu or memory breaks."""


def of_limit_range(raw: Mapping[str, Any]) -> Limits:
    """Read a LimitRange; what cannot be read demands nothing."""
    defaults: set[Default] = set()
    bounds: list[str] = []
    for item in _mappings((raw.get("spec") or {}).get("limits")):
        kind = item.get("type")
        if kind == "Container":
            defaults.update(_defaults(item))
        if kind in ("Pod", "Container"):
            fields = _BOUNDS if kind == "Pod" else ("maxLimitRequestRatio",)
            bounds += [
                f"{field}.{name} of {kind.lower()}s"
                for field in fields
                for name in NATIVE
                if name in (item.get(field) or {})
            ]
    return Limits(frozenset(defaults), (), tuple(bounds))


def _defaults(item: Mapping[str, Any]) -> Iterator[Default]:
    for part, fields in (("requests", _REQUESTS), ("limits", _LIMITS)):
        for name in NATIVE:
            written = [value for f in fields if (value := (item.get(f) or {}).get(name))]
            for value in written:
                try:
                    yield Default(part, name, quantity.milli(value))
                except quantity.QuantityError:
                    # The API server stores no such LimitRange, so none applies it.
                    continue


def of_resource_quota(raw: Mapping[str, Any]) -> Limits:
    """Read a ResourceQuota; one that leaves BestEffort pods alone demands nothing of them."""
    spec = raw.get("spec") or {}
    if "NotBestEffort" in (spec.get("scopes") or ()):
        return Limits()
    if any(
        one.get("scopeName") in ("NotBestEffort", "PriorityClass")
        for one in _mappings((spec.get("scopeSelector") or {}).get("matchExpressions"))
    ):
        return Limits()
    counted = [name for name in spec.get("hard") or () if name in _COUNTED]
    return Limits(counted=tuple(sorted(counted)))


def _mappings(items: Any) -> Iterator[Mapping[str, Any]]:
    yield from (one for one in items or () if isinstance(one, Mapping))


@functools.lru_cache(maxsize=4096)
def sentences(found: tuple[tuple[str, Limits], ...]) -> tuple[str, ...]:
    """Return what will happen to a pod whose cpu and memory were moved; objects come by name."""
    return tuple(text for name, limits in found for text in _sentences(name, limits))


def _sentences(name: str, limits: Limits) -> Iterator[str]:
    if limits.counted:
        yield (
            f"ResourceQuota {name} counts {', '.join(limits.counted)}, which this pod no longer "
            "states because they were moved to lent resources, so the API server will refuse it; "
            "give that quota the scope NotBestEffort"
        )
    if limits.bounds:
        yield (
            f"LimitRange {name} demands {', '.join(limits.bounds)}, which this pod no longer "
            "states because they were moved to lent resources, so the API server will refuse it; "
            "remove cpu and memory from that LimitRange"
        )
    elif limits.defaults:
        given = sorted({one.resource for one in limits.defaults})
        yield (
            f"LimitRange {name} adds {' and '.join(given)} to containers that state none, so this "
            "pod asks for them beside its lent resources; remove them from that LimitRange"
        )
