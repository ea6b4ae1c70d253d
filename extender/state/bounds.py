"""How much of what others write is kept: annotations that are short, amounts that can be added."""

import sys
from collections.abc import Mapping
from typing import Any, Final

from api.wire import untrusted
from extender.state import requirements

LARGEST: Final = 1 << 48
"""Amounts beyond this are cut: no machine has them, and sums must stay within 64 bits."""
SHORT: Final = untrusted.Bounds(bytes=4 << 10, depth=8, parts=256)
"""Of annotations that are kept as they are: what is longer counts as absent.

They are keys of what is remembered, so their length times their number is memory.
"""


def annotated(text: str) -> dict[str, Any]:
    """Read an annotation that holds an object; anything else counts as absent."""
    if not text:
        return {}
    try:
        return untrusted.decode(text, dict[str, Any], "annotation", bounds=SHORT)
    except untrusted.ReadError:
        return {}


def short(notes: Mapping[str, str], name: str) -> str:
    """Return an annotation as it is, empty where it is absent or longer than any real one."""
    text = notes.get(name, "")
    return text if len(text) <= SHORT.bytes else ""


def bounded(value: int) -> int:
    """Cut an amount to what can be calculated with."""
    return max(0, min(value, LARGEST))


def pairs(amounts: Mapping[str, int]) -> requirements.Pairs:
    """Return amounts as sorted pairs with shared names, without zeros."""
    intern = sys.intern
    return tuple(
        sorted(
            [(intern(name), min(value, LARGEST)) for name, value in amounts.items() if value > 0]
        )
    )
