"""Typed allocations of plug-ins, and how they are recorded in the annotations of bound pods.

The annotation is the record: the state is rebuilt from it after a restart, so what a codec reads
is what was granted. Another client may have written it, so reading is bounded.
"""

import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, cast, runtime_checkable

import msgspec

from extender.state import requirements

Allocations = Mapping[str, msgspec.Struct]
"""What plug-ins allocated, by plug-in name."""
NONE: Final[Allocations] = types.MappingProxyType({})
UNREADABLE: Final = (
    *(ValueError, TypeError, LookupError, AttributeError),
    *(ArithmeticError, RecursionError, AssertionError),
)
"""What a codec may raise because of a text that is no allocation."""
LONGEST: Final = 16 << 10
"""Bytes of one annotation; a longer one cannot be read."""


@runtime_checkable
class AllocationCodec(Protocol):
    """How one plug-in writes what it allocates on the pod."""

    name: str
    """The plug-in."""
    annotations: Sequence[str]
    """Names of the annotations that it reads; no others reach `decode`."""

    def decode(
        self, annotations: Mapping[str, str], wanted: requirements.PodRequirements
    ) -> msgspec.Struct | None:
        """Read what was allocated, never more than the pod asks for; None: nothing was.

        An error says that the text is no allocation; it is reported and counts as absent.
        """

    def encode(self, allocation: Any) -> Mapping[str, str]:
        """Return the annotations that record an allocation."""

    def conflicts(self, one: Any, other: Any) -> bool:
        """Whether two allocations on the same node overlap."""


@runtime_checkable
class SharingCodec(Protocol):
    """A codec of what several pods hold parts of, such as a GPU; optional."""

    name: str

    def exceeds(self, one: Any, others: Sequence[Any]) -> bool:
        """Whether an allocation takes more than some others on the same node leave of the whole."""


@runtime_checkable
class Divisible(Protocol):
    """An allocation of which others may hold parts, such as owners of what a Reservation got."""

    def without(self, parts: Sequence[Any]) -> Any | None:
        """Return what is left beyond some parts, None where that is nothing."""


def consumed(granted: Allocations) -> str:
    """Return the id of the claim whose capacity a pod uses, empty where it uses none.

    An allocation that says so has it as its attribute `consumes`.
    """
    for one in granted.values():
        found: str = getattr(one, "consumes", "")
        if found:
            return found
    return ""


def sharing(codec: AllocationCodec) -> SharingCodec | None:
    """Return a codec of what several pods hold parts of; None for others.

    The same as `isinstance`, which takes longer to ask an object for all that a protocol names.
    """
    return cast(SharingCodec, codec) if hasattr(codec, "exceeds") else None


def divisible(granted: msgspec.Struct) -> Divisible | None:
    """Return an allocation of which others may hold parts; None for others. See `sharing`."""
    return cast(Divisible, granted) if hasattr(granted, "without") else None


def read(
    codecs: Iterable[AllocationCodec],
    annotations: Mapping[str, str],
    wanted: requirements.PodRequirements,
) -> tuple[Allocations, tuple[str, ...]]:
    """Return what annotations record, and the plug-ins whose annotations cannot be read."""
    found: dict[str, msgspec.Struct] = {}
    unreadable: list[str] = []
    for codec in codecs:
        texts = {name: annotations[name] for name in codec.annotations if name in annotations}
        if not texts:
            continue
        if max(map(len, texts.values())) > LONGEST:
            unreadable.append(codec.name)
            continue
        try:
            granted = codec.decode(texts, wanted)
        except UNREADABLE:
            unreadable.append(codec.name)
            continue
        if granted is not None:
            found[codec.name] = granted
    return found or NONE, tuple(unreadable)


def written(codecs: Iterable[AllocationCodec], granted: Allocations) -> dict[str, str]:
    """Return the annotations that record allocations."""
    texts: dict[str, str] = {}
    for codec in codecs if granted else ():
        if codec.name in granted:
            texts |= codec.encode(granted[codec.name])
    return texts
