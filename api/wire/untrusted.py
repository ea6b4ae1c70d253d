"""JSON texts that tenants, node accounts or administrators write: read within bounds.

An annotation may hold 256 KiB of anything. A reader that meets it inside a watch or a tick must
neither fail in a way that its caller does not expect nor spend long on it.
"""

import re
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")


class ReadError(ValueError):
    """An object or payload that cannot be read; the message names the field and the reason."""


class Bounds(NamedTuple):
    """What a JSON text may be at most."""

    bytes: int
    """Characters of the text; a text of n characters has at least n bytes."""
    depth: int
    """Levels of arrays and objects inside each other."""
    parts: int
    """Commas, and so entries of all arrays and objects together."""


ANNOTATION: Final = Bounds(bytes=64 << 10, depth=32, parts=4096)
"""Of an annotation of a pod or node; the largest legitimate ones take half of it."""
DOCUMENT: Final = Bounds(bytes=1 << 20, depth=64, parts=100_000)
"""Of a value in a ConfigMap, which administrators write and the API server limits to 1 MiB."""

# A string may lack its end, so that none is looked at again from each quote inside it.
_OPENING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[^\[\]{}"]+', re.DOTALL)
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError)
"""What decoding raises; msgspec raises RecursionError on its own, below a thousand levels."""


def checked(text: str, what: str, bounds: Bounds = ANNOTATION) -> str:
    """Return a JSON text that is within its bounds; a ReadError names the bound it exceeds."""
    if len(text) > bounds.bytes:
        raise ReadError(f"{what}: {len(text)} bytes are more than the {bounds.bytes} that are read")
    if text.count(",") > bounds.parts:
        raise ReadError(f"{what}: more than the {bounds.parts} entries that are read")
    if _is_deeper(text, bounds.depth):
        raise ReadError(f"{what}: nested more than {bounds.depth} levels deep")
    return text


def decode(
    text: str, kind: type[T], what: str, *, strict: bool = True, bounds: Bounds = ANNOTATION
) -> T:
    """Decode a JSON text into a msgspec type; anything else is a ReadError that says why.

    `what` names the field for people, such as ``annotation koordinator.sh/cpuBurst``. `strict`
    false lets numbers and booleans stand in strings, as msgspec does.
    """
    try:
        return msgspec.json.decode(checked(text, what, bounds), type=kind, strict=strict)
    except ReadError:
        raise
    except msgspec.ValidationError as error:
        raise ReadError(f"{what}: {error}") from error
    except _UNREADABLE as error:
        raise ReadError(f"{what}: not JSON: {error}") from error


def parsed(text: str, what: str, bounds: Bounds = ANNOTATION) -> Any:
    """Decode a JSON text without a type."""
    return decode(text, Any, what, bounds=bounds)


def _is_deeper(text: str, most: int) -> bool:
    if text.count("[") + text.count("{") <= most:
        return False
    depth = 0
    for character in _OPENING.sub("", text):
        depth += 1 if character in "[{" else -1
        if depth > most:
            return True
    return False
