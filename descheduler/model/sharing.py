"""Equal values that many objects hold, kept once.

Pods of one template say the same, and 150,000 pods come of some thousand templates. What is
rarely repeated pushes only itself out of what is remembered. Pure.
"""

import functools
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from api.kubernetes import core
from api.wire import durations

T = TypeVar("T")

_MOST: Final = 32_768
_LONGEST: Final = 4096
"""Characters of a text that is shared; longer ones are kept with their object alone, so that what
was written once is not remembered."""
_ENCODE: Final = msgspec.json.Encoder().encode
_DIGEST_BYTES: Final = 16

Pairs = tuple[tuple[str, str], ...]


def labels(written: Mapping[str, str]) -> Mapping[str, str]:
    """Return labels, one mapping for all that are equal."""
    if not written:
        return _NO_LABELS
    if sum(len(name) + len(value) for name, value in written.items()) > _LONGEST:
        return written
    return _labels(tuple(sorted(written.items())))


def owners(written: tuple[core.OwnerReference, ...]) -> tuple[core.OwnerReference, ...]:
    """Return owner references, one tuple for the pods of one controller."""
    return _owners(written) if written else written


@functools.lru_cache(maxsize=_MOST)
def moment(written: str) -> float:
    """Return seconds since the epoch."""
    return durations.timestamp(written)


def moment_of(written: str | None) -> float:
    """Return seconds since the epoch, negative where nothing is written."""
    return moment(written) if written else -1.0


@functools.lru_cache(maxsize=_MOST)
def _labels(written: Pairs) -> Mapping[str, str]:
    return dict(written)


@functools.lru_cache(maxsize=_MOST)
def _owners(written: tuple[core.OwnerReference, ...]) -> tuple[core.OwnerReference, ...]:
    return written


_NO_LABELS: Final[Mapping[str, str]] = {}


class Shared:
    """Values found by a digest of what they are made of; the whole is forgotten when it is full."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._found: dict[bytes, Any] = {}

    def get(self, shape: Any, make: Callable[[], T]) -> T:
        """Return the value that was made of an equal shape, or make it."""
        key = hashlib.blake2b(_ENCODE(shape), digest_size=_DIGEST_BYTES).digest()
        found: T | None = self._found.get(key)
        if found is None:
            found = make()
            if len(self._found) >= self._most:
                self._found.clear()
            self._found[key] = found
        return found
