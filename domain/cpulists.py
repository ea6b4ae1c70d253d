"""Linux cpu lists such as `0-3,8`: read and written. Pure."""

import functools
from collections.abc import Iterable

LARGEST_RANGE_END = 4096
_REMEMBERED = 128


class CpuListError(ValueError):
    """Text that is no cpu list."""


@functools.lru_cache(_REMEMBERED)
def parse(text: str) -> frozenset[int]:
    """Read a cpu list; empty text is the empty set.

    The groups of a node share a few lists, which are asked for every second.
    """
    cpus: set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        low = _number(first, text)
        if not dash:
            cpus.add(low)
            continue
        high = _number(last, text)
        if high > LARGEST_RANGE_END:
            raise CpuListError(f"cpu list {text[:80]!r} names a cpu above {LARGEST_RANGE_END}")
        cpus.update(range(low, high + 1))
    return frozenset(cpus)


def text(cpus: Iterable[int]) -> str:
    """Write cpus in the kernel's own form: ascending, ranges joined."""
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
