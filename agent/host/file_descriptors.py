"""How many file descriptors this process may use (RLIMIT_NOFILE), and how they are shared out."""

import logging
import resource
from typing import Final

import msgspec

from agent.host import files

_logger = logging.getLogger(__name__)
HIGHEST: Final = 1 << 20
"""More is never asked for: some hosts allow a billion."""
RESERVE: Final = 256
"""For connections, watches, journals and what is opened for a moment."""
_LEAST: Final = 16


class Budget(msgspec.Struct, frozen=True):
    """How many descriptors each part may hold at once."""

    kept: int
    """Files of groups that are read in every tick, kept open between the readings."""
    counters: int
    """Counters of the processor."""


def share(limit: int) -> Budget:
    """Share out a limit; what is left over stays free."""
    free = max(limit - RESERVE, 4 * _LEAST)
    kept = min(files.MOST_KEPT, free * 3 // 4)
    return Budget(kept, max(free - kept, _LEAST))


def limit() -> int:
    """Return how many files this process may have open."""
    return _bounded(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def raise_limit() -> int:
    """Raise the soft limit as far as the hard one allows; return how many may be open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _bounded(hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        _logger.info("open files limit=%d before=%d", wanted, soft)
    return limit()


def _bounded(amount: int) -> int:
    return HIGHEST if amount == resource.RLIM_INFINITY else min(amount, HIGHEST)
