"""How much of what was fed to something it still holds."""

import gc
import sys
from collections.abc import Callable


def blocks(feed: Callable[[int], object], times: int) -> int:
    """Return how many blocks of memory more are held after feeding so often than after once.

    Each name that is kept is one at least. To count them takes no time, where tracing every
    allocation makes it three times as slow. A large block is none of these: Python's own table of
    interned names, which may grow by the way, does not count.
    """
    feed(0)
    gc.collect(0)
    before = sys.getallocatedblocks()
    for number in range(1, times + 1):
        feed(number)
    gc.collect(0)
    return sys.getallocatedblocks() - before
