"""Where filter has sent pods lately: a pod that is asked about again was not bound there."""

import collections
from typing import Final

AVOID_SECONDS: Final = 30.0
_MOST: Final = 10_000


class Attempts:
    """The last node of each pod; times are of the monotonic clock."""

    def __init__(self) -> None:
        self._last: collections.OrderedDict[str, tuple[float, str]] = collections.OrderedDict()

    def __len__(self) -> int:
        """Return of how many pods an attempt is remembered."""
        return len(self._last)

    def sent(self, uid: str, node: str, now: float) -> None:
        """Note that filter has answered one node."""
        self._last.pop(uid, None)
        self._last[uid] = now, node
        while len(self._last) > _MOST or self._oldest() + AVOID_SECONDS <= now:
            self._last.popitem(last=False)

    def failed(self, uid: str, now: float) -> str:
        """Return the node on which this pod's last attempt failed after filter, empty if none."""
        since, node = self._last.get(uid, (now - AVOID_SECONDS, ""))
        return node if since + AVOID_SECONDS > now else ""

    def _oldest(self) -> float:
        return next(iter(self._last.values()))[0]
