"""Ever longer pauses with jitter; the randomness is passed in."""

import random
from collections.abc import Callable
from typing import NamedTuple


def pause(failures: int, first: float, longest: float, rng: random.Random) -> float:
    """Return how long to wait after so many failures in a row: doubling, within half and full."""
    # The exponent is bounded so that an outage of days does not overflow.
    full = min(longest, first * 2.0 ** min(max(failures - 1, 0), 32))
    return full * rng.uniform(0.5, 1.0)


class _Failed(NamedTuple):
    """How often in a row something failed, and when it is tried again."""

    times: int
    again_at: float


class Failures:
    """What failed by key, for callers who look at everything again and again; no timer of its own.

    `monotonic` tells the seconds that pauses are measured in.
    """

    def __init__(
        self,
        monotonic: Callable[[], float],
        first: float,
        longest: float,
        rng: random.Random | None = None,
    ) -> None:
        self._monotonic = monotonic
        self._first, self._longest = first, longest
        self._rng = rng or random.Random()
        self._failed: dict[str, _Failed] = {}

    def rests(self, key: str) -> bool:
        """Tell whether a key failed not long ago."""
        failed = self._failed.get(key)
        return failed is not None and self._monotonic() < failed.again_at

    def note(self, key: str, *, written: bool) -> None:
        """Take in whether a key succeeded; after each failure in a row the pause is longer."""
        if written:
            self._failed.pop(key, None)
            return
        times = 1 + (self._failed[key].times if key in self._failed else 0)
        rest = pause(times, self._first, self._longest, self._rng)
        self._failed[key] = _Failed(times, self._monotonic() + rest)

    def keep(self, wanted: Callable[[str], bool]) -> None:
        """Forget the keys that are not wanted any more."""
        for key in [key for key in self._failed if not wanted(key)]:
            del self._failed[key]
