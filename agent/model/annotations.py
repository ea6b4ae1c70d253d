"""JSON annotations of pods and nodes, read within bounds and remembered within bounds. Pure.

Every tick asks for the same annotations again, so answers are remembered, those about texts that
cannot be read as well. Tenants choose the texts: how many characters of them are remembered is
bounded, not only how many texts.
"""

from collections.abc import Callable
from typing import Annotated, Final, Generic, TypeVar

import msgspec

from api.wire import untrusted

ReadError = untrusted.ReadError
Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A whole number as the API has them; larger ones overflow where they meet a fraction."""
REMEMBERED_CHARACTERS: Final = 256 << 10
"""Of one annotation, over all pods of a node; usual texts take a few hundred."""
_T = TypeVar("_T")
_V = TypeVar("_V")


class Reader(Generic[_T, _V]):
    """Reads one annotation: decodes its JSON and makes of it what decisions take."""

    def __init__(
        self, key: str, kind: type[_T], make: Callable[[_T], _V], *, strict: bool = True
    ) -> None:
        """`make` may raise a ValueError, which becomes a ReadError."""
        self.key = key
        self._kind, self._make, self._strict = kind, make, strict
        self._known: dict[str, tuple[_V] | str] = {}
        self._characters = 0

    @property
    def characters(self) -> int:
        """How many characters of texts are remembered."""
        return self._characters

    def __call__(self, written: str) -> _V:
        """Read one text; a ReadError names the annotation and what is wrong."""
        found = self._known.get(written)
        if found is None:
            found = self._read(written)
            self._remember(written, found)
        if isinstance(found, str):
            raise ReadError(found)
        return found[0]

    def if_readable(self, written: str) -> _V | None:
        """Read one text; one that cannot be read says nothing."""
        try:
            return self(written)
        except ReadError:
            return None

    def _read(self, written: str) -> tuple[_V] | str:
        what = f"annotation {self.key}"
        try:
            decoded = untrusted.decode(written or "{}", self._kind, what, strict=self._strict)
            return (self._make(decoded),)
        except ReadError as error:
            return str(error)
        except (ValueError, ArithmeticError, RecursionError) as error:
            return f"{what}: {error}"

    def _remember(self, written: str, found: tuple[_V] | str) -> None:
        # The longest text takes up no more than a quarter: it cannot drive out all others.
        if len(written) > REMEMBERED_CHARACTERS // 4:
            return
        self._known[written] = found
        self._characters += len(written)
        while self._characters > REMEMBERED_CHARACTERS:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._characters -= len(oldest)
