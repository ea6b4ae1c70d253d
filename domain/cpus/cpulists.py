"""Linux cpu lists such as `0-3,8`: read and written. Pure."""

import functools
from collections.abc import Iterable

LARGEST_RANGE_END = 4096
LONGEST = 16 << 10
"""Characters of a list; 4,096 single cpus take 19 KiB, those of any real machine a few hundred."""
MOST_PARTS = 4096
_REMEMBERED = 128
_REMEMBERED_LENGTH = 1024
"""Only short texts are remembered, so that what tenants write takes little memory."""


class CpuListError(ValueError):
    """Text that is no cpu list."""


def parse(text: str) -> frozenset[int]:
    """Read a cpu list; empty text is the empty set.

    The cgroups of a node share a few lists, which are asked for every second; a text that is no
    list is remembered as well. Raises CpuListError, for a list beyond the bounds too.
    """
    if len(text) > LONGEST:
        raise CpuListError(f"cpu list of {len(text)} characters, more than the {LONGEST} read")
    found = _remembered(text) if len(text) <= _REMEMBERED_LENGTH else _read(text)
    if isinstance(found, str):
        raise CpuListError(found)
    return found


def _read(text: str) -> frozenset[int] | str:
    """Return the cpus of a list, or what is wrong with it."""
    if text.count(",") >= MOST_PARTS:
        return f"cpu list {text[:80]!r} has more than {MOST_PARTS} parts"
    try:
        return _cpus(text)
    except CpuListError as error:
        return str(error)


_remembered = functools.lru_cache(_REMEMBERED)(_read)


def _cpus(text: str) -> frozenset[int]:
    spans: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        low = _number(first, text)
        high = _number(last, text) if dash else low
        if dash and high > LARGEST_RANGE_END:
            raise CpuListError(f"cpu list {text[:80]!r} names a cpu above {LARGEST_RANGE_END}")
        spans.append((low, high))
    cpus: set[int] = set()
    reached = -1
    # In order, so that a cpu that thousands of ranges name is added once.
    for low, high in sorted(spans):
        cpus.update(range(max(low, reached + 1), high + 1))
        reached = max(reached, high)
    return frozenset(cpus)


def text(cpus: Iterable[int]) -> str:
    """Write cpus in the kernel's own form: ascending, ranges joined.

    Hundreds of cgroups get the same few sets in every tick, so that sets are written once.
    """
    return _written(cpus) if isinstance(cpus, frozenset) else _text(cpus)


@functools.lru_cache(_REMEMBERED)
def _written(cpus: frozenset[int]) -> str:
    return _text(cpus)


def _text(cpus: Iterable[int]) -> str:
    parts: list[str] = []
    first = last = -2
    for cpu in sorted(cpus):
        if cpu == last + 1:
            last = cpu
            continue
        if last >= 0:
            parts.append(_span(first, last))
        first = last = cpu
    if last >= 0:
        parts.append(_span(first, last))
    return ",".join(parts)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _number(part: str, whole: str) -> int:
    digits = part.removeprefix("+")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 10:
        raise CpuListError(f"cpu list {whole[:80]!r} has {part[:20]!r} where a cpu number belongs")
    value = int(digits)
    if value >= 1 << 31:
        raise CpuListError(f"cpu list {whole[:80]!r} names a cpu that no machine has")
    return value
