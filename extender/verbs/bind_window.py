"""How long what was checked may still be written."""

import math
from typing import Final

import msgspec

from kube.client import errors
from process.runtime import clock as clocks

LATE: Final = "too much time passed between the check and the write"


class Window(msgspec.Struct, frozen=True, gc=False):
    """The time within which a write has to leave, on the monotonic clock.

    A process that stood still for longer may have been replaced, and others have decided meanwhile.
    """

    clock: clocks.Clock
    end: float

    @classmethod
    def opened(cls, clock: clocks.Clock, seconds: float) -> "Window":
        """Return a window of so many seconds that begins now."""
        return cls(clock, clock.monotonic() + seconds)

    def is_open(self) -> bool:
        """Whether a write may leave."""
        return self.clock.monotonic() < self.end

    def check(self) -> None:
        """Raise Deposed when the write must not leave any more."""
        if not self.is_open():
            raise errors.Deposed(LATE)

    def remaining(self) -> float:
        """A write that has left may take its time: its outcome is read back."""
        return math.inf
