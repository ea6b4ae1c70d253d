"""What annotations say about load: a node's own thresholds and a pod's own estimate.

Values are those that whole numbers of JSON can be; anything else makes its annotation void.
"""

import functools
from collections.abc import Mapping
from typing import Any

from api.wire import durations
from domain.usage import load
from extender.framework import views

_LARGEST = 1 << 63
_DIGITS = 64
"""Leading zeros included; reading a number of many thousand digits takes seconds."""


def factors(text: str) -> dict[str, int]:
    """Read a pod's own scaling factors; unreadable ones are absent."""
    try:
        return _whole(views.annotated(text))
    except ValueError:
        return {}


def seconds(text: str, otherwise: float | None) -> float | None:
    """Read a pod's own delay; what is no number of seconds leaves the cluster's."""
    digits = text.removeprefix("+")
    if (
        not (digits.isascii() and digits.isdecimal())
        or len(digits) > _DIGITS
        or int(digits) >= _LARGEST
    ):
        return otherwise
    return int(digits)


def profile(text: str, base: load.Profile) -> load.Profile:
    """Return the thresholds of a node: each group that its annotation fills replaces the base's."""
    own = _override(text) if text else {}
    if not own:
        return base
    return load.Profile(
        usage=own.get("usage", base.usage),
        prod=own.get("prod", base.prod),
        aggregated=own.get("aggregated", base.aggregated),
    )


@functools.lru_cache(maxsize=1024)
def _override(text: str) -> Mapping[str, load.Thresholds]:
    document = views.annotated(text)
    try:
        usage = _whole(document.get("usageThresholds"))
        prod = _whole(document.get("prodUsageThresholds"))
        window = _window(document.get("aggregatedUsage"))
    except ValueError:
        return {}
    groups = {
        "usage": load.Thresholds(usage) if usage else None,
        "prod": load.Thresholds(prod) if prod else None,
        "aggregated": window,
    }
    return {name: group for name, group in groups.items() if group is not None}


def _window(written: Any) -> load.Thresholds | None:
    """Read thresholds for a window; they count with percentages and a kind only."""
    if written is None:
        return None
    if not isinstance(written, dict):
        raise ValueError("not an object")
    kind = written.get("usageAggregationType") or ""
    duration = written.get("usageAggregatedDuration")
    if not isinstance(kind, str) or not isinstance(duration, str | None):
        raise ValueError("not a text")
    percent = _whole(written.get("usageThresholds"))
    length = 0.0 if duration is None else durations.seconds(duration)
    return load.Thresholds(percent, kind, length) if percent and kind else None


def _whole(written: Any) -> dict[str, int]:
    """Return whole numbers by name; null counts as none."""
    if written is None:
        return {}
    if not isinstance(written, dict):
        raise ValueError("not an object")
    for value in written.values():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise ValueError("not a whole number")
    return {str(name): value or 0 for name, value in written.items()}
