"""Durations and moments as they travel on the wire, read to seconds and written canonically."""

import datetime
import functools
import math
import re
from fractions import Fraction
from typing import Final

_UNITS: Final = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
# A published schema stays in ASCII: API clients differ in how they treat other letters.
PATTERN: Final = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|ms|s|m|h))+)$"


_LONGEST: Final = 1024
"""Characters of a duration; Go writes a few dozen."""
LONGEST: Final = Fraction(2**63 - 1, 10**9)
"""The longest duration in seconds: what 64 bits hold in nanoseconds."""
FIRST_MOMENT: Final = -62_135_596_800
LAST_MOMENT: Final = 253_402_300_799
"""From the year 1 to the year 9999 in UTC: no other moment can be written."""


class DurationError(ValueError):
    """A text that is no duration; says what one looks like."""


class TimestampError(ValueError):
    """A text that is no RFC 3339 moment."""


def seconds(text: str) -> float:
    """Read a Go duration such as ``1h30m`` and return seconds."""
    if len(text) > _LONGEST:
        raise DurationError(_hint(f"{text[:80]}..."))
    return _seconds(text)


@functools.lru_cache(maxsize=1024)
def _seconds(text: str) -> float:
    unsigned = text.lstrip("+-") if text[:1] in {"+", "-"} else text
    if len(text) - len(unsigned) > 1:
        raise DurationError(_hint(text))
    if unsigned == "0":
        return 0.0
    total, position = Fraction(0), 0
    while part := _PART.match(unsigned, position):
        total += Fraction(part[1].rstrip(".")) * _UNITS[part[2]]
        position = part.end()
    if not position or position != len(unsigned):
        raise DurationError(_hint(text))
    if total > LONGEST:
        raise DurationError(f'"{text}" is no duration; the longest are 292 years')
    return float(-total if text.startswith("-") else total)


def _hint(text: str) -> str:
    return f'"{text}" is no duration; write a number with a unit such as "90s", "10m" or "24h"'


def text(value: float) -> str:
    """Write seconds as a canonical Go duration, for instance ``24h0m0s``."""
    nanos = round(value * 10**9)
    if not nanos:
        return "0s"
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    if nanos < 10**9:
        unit, size = next(u for u in (("ms", 10**6), ("µs", 1000), ("ns", 1)) if nanos >= u[1])
        return f"{sign}{_decimal(nanos, size)}{unit}"
    minutes, nanos = divmod(nanos, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal(nanos, 10**9)}s"


def _decimal(value: int, size: int) -> str:
    whole, rest = divmod(value, size)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).rjust(len(str(size)) - 1, '0').rstrip('0')}"


def timestamp(moment: str) -> float:
    """Read an RFC 3339 moment and return seconds since the epoch.

    Far from UTC, a moment may be up to a day before the year 1 or after the year 9999: it counts as
    the first or the last one, so that whatever is read can be written.
    """
    try:
        parsed = datetime.datetime.fromisoformat(moment)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None or len(moment) < len("2026-01-01T00:00:00Z"):
        raise TimestampError(
            f'"{moment}" is no moment; write RFC 3339 as in "2026-01-31T08:00:00Z"'
        )
    return min(max(parsed.timestamp(), FIRST_MOMENT), LAST_MOMENT)


def moment(value: float) -> str:
    """Write seconds since the epoch as RFC 3339 with whole seconds."""
    return _utc(value).isoformat(timespec="seconds").replace("+00:00", "Z")


def precise_moment(value: float) -> str:
    """Write seconds since the epoch as RFC 3339 with microseconds, as leases and events do."""
    seconds = math.floor(value)
    micros = round((value - seconds) * 10**6)
    if micros == 10**6:
        seconds, micros = seconds + 1, 0
    return f"{_until_seconds(seconds)}.{micros:06d}Z"


@functools.lru_cache(maxsize=16)
def _until_seconds(value: int) -> str:
    """Write a whole second once: many moments are of the present one."""
    return _utc(value).isoformat(timespec="seconds").removesuffix("+00:00")


def _utc(value: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(value, tz=datetime.UTC)
