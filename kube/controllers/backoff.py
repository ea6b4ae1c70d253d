"""Ever longer pauses with jitter; the randomness is passed in."""

import random


def pause(failures: int, first: float, longest: float, rng: random.Random) -> float:
    """Return how long to wait after so many failures in a row: doubling, within half and full."""
    # The exponent is bounded so that an outage of days does not overflow.
    full = min(longest, first * 2.0 ** min(max(failures - 1, 0), 32))
    return full * rng.uniform(0.5, 1.0)
