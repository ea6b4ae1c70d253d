"""What a node says that it cannot keep: what the node could not take back is not lent. Pure."""

import functools
from collections.abc import Mapping
from typing import Final

import msgspec

from api import names
from api.wire import untrusted

HOLDING: Final = "cpu-suppress"
"""The strategy that holds best-effort work back when online work needs the cpu."""
UNAVAILABLE: Final = "unavailable"
MOST_BYTES: Final = 16 << 10
"""Of the annotation, which is remembered as it is; an agent writes a quarter of that."""


class _Row(msgspec.Struct, frozen=True):
    verdict: str = ""
    how: str = ""


def broken(annotations: Mapping[str, str]) -> str:
    """Return why a node must not lend anything, empty where it may or that was not checked."""
    text = annotations.get(names.ANNOTATION_STRATEGIES)
    return "" if text is None or len(text) > MOST_BYTES else _read(text)


@functools.lru_cache(maxsize=256)
def _read(text: str) -> str:
    try:
        row = untrusted.decode(text, dict[str, _Row], names.ANNOTATION_STRATEGIES).get(HOLDING)
    except untrusted.ReadError:
        # Written by hand: the agent will write it again, until then nothing is known.
        return ""
    if row is None or row.verdict != UNAVAILABLE:
        return ""
    return f"its agent cannot hold best-effort work back: {row.how}"
