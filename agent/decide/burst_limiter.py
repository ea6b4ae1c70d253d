"""How long a container may go beyond its limit: a bucket filled by using little. Pure."""

import msgspec

CONSUMES_FROM, SAVES_BELOW = 100, 60
"""Percent of the limit: using more takes tokens, using less than the second saves them."""
LEAST_PERCENT = 100
FIRST_SHARE = 4
"""A new bucket is filled to one part in so many."""


class Bucket(msgspec.Struct, frozen=True, gc=False):
    """Tokens of one container: percent of its limit, times seconds."""

    capacity: int
    tokens: int
    at: float
    """When it was looked at, on the monotonic clock."""


def capacity(period_seconds: int, percent: int) -> int:
    """Return the most tokens that a bucket holds, and how far it may be overdrawn."""
    return period_seconds * (percent - LEAST_PERCENT)


def look(
    bucket: Bucket | None,
    period_seconds: int | None,
    percent: int | None,
    used_percent: int,
    now: float,
) -> tuple[bool, Bucket | None]:
    """Tell whether a container may burst now, and return its bucket for the next look."""
    if period_seconds is None or period_seconds < 0:
        return True, None
    if percent is None or percent < LEAST_PERCENT:
        return False, None
    size = capacity(period_seconds, percent)
    if bucket is None or bucket.capacity != size:
        bucket = Bucket(size, size // FIRST_SHARE, now)
    seconds = int(now - bucket.at)
    tokens = bucket.tokens
    if used_percent >= CONSUMES_FROM:
        tokens -= (used_percent - CONSUMES_FROM) * seconds
    elif used_percent < SAVES_BELOW:
        tokens += (CONSUMES_FROM - used_percent) * seconds
    tokens = max(-size, min(size, tokens))
    return tokens > 0, Bucket(size, tokens, now)
