"""What is remembered of moves beyond the life of their jobs and of a process. Pure.

It stands as JSON in one ConfigMap, of bounded size: the last moves of each profile whose outcome is
known, and the moves that cool-down and hourly limits look back at.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from api.wire import untrusted
from descheduler.framework.planning import history
from descheduler.receipts import breaker

KEY: Final = "memory.json"
"""Where it stands in the data of the ConfigMap."""
MOST_MOVES: Final = 2000
"""Moves that are remembered; the oldest are forgotten."""
_MOST_BYTES: Final = 704 << 10
"""What they take at most; a ConfigMap holds a MiB."""
MOST_PROFILES: Final = 32
_BOUNDS: Final = untrusted.Bounds(bytes=768 << 10, depth=6, parts=100_000)
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class Memory(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of the ConfigMap."""

    breakers: Mapping[str, breaker.Breaker] = {}
    """By profile."""
    moves: Mapping[str, history.Moved] = {}
    """By uid of the pod that has moved."""


NOTHING: Final = Memory()


def text(one: Memory) -> str:
    """Return it as it is written; what is beyond the bounds is left out."""
    breakers = dict(sorted(one.breakers.items())[:MOST_PROFILES])
    return _ENCODER.encode(Memory(breakers, dict(_latest(one.moves)))).decode()


def _latest(moves: Mapping[str, history.Moved]) -> Iterator[tuple[str, history.Moved]]:
    """Yield the latest moves, as many as are remembered and fit."""
    room = _MOST_BYTES
    for uid, one in sorted(moves.items(), key=lambda item: (-item[1].at, item[0]))[:MOST_MOVES]:
        room -= len(_ENCODER.encode({uid: one}))
        if room < 0:
            return
        yield uid, one


def read(data: Mapping[str, str] | None) -> Memory:
    """Read the data of the ConfigMap; a ReadError says what is wrong with it."""
    written = (data or {}).get(KEY, "")
    if not written:
        return NOTHING
    return untrusted.decode(written, Memory, f"key {KEY}", bounds=_BOUNDS)
