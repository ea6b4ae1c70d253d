"""What each quota has borrowed over time, between two counters that its status carries. Pure.

The counter in the status is the record: a new leader goes on from it. In between, what a quota
borrows is followed here, so that an hour of much and an hour of nothing count as what they were.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from api.koordinator import quota as quotas
from api.wire import durations, quantity
from domain.quota import model
from domain.quota.shares import decay

FIELD: Final = "borrowed"
_LONGEST_GAP: Final = 2.0
"""Periods for which it is assumed that nothing has changed since the counter was written."""


class _Followed(NamedTuple):
    """A counter at the moment of the last change, and what has been borrowed since."""

    counter: decay.Counter
    borrows: model.Amounts
    written_at: float
    """When the counter was last given out to be written, or the status says that it was."""


class Borrowing:
    """The counters of all quotas during one term of leadership."""

    def __init__(self) -> None:
        self._followed: dict[str, _Followed] = {}

    def follow(
        self, identity: str, figures: model.Figures | None, now: float, half_life: float
    ) -> None:
        """Take in what a quota uses from now on; it was known before by `resume`."""
        borrows = decay.borrowed(figures) if figures is not None else {}
        known = self._followed.get(identity)
        if known is None or known.borrows == borrows:
            return
        counter = decay.advanced(known.counter, known.borrows, now, half_life)
        self._followed[identity] = _Followed(counter, borrows, known.written_at)

    def resume(
        self, found: quotas.Quota, figures: model.Figures | None, now: float, half_life: float
    ) -> None:
        """Go on from the counter that the object carries, unless the quota is followed already.

        Where it was not counted for long, what was borrowed is unknown, and taken for nothing.
        """
        if found.identity in self._followed:
            return
        borrows = decay.borrowed(figures) if figures is not None else {}
        # A moment that is yet to come was written by another client.
        written_at = min(found.borrowed_at or now, now)
        counter = decay.Counter(found.borrowed, written_at)
        known = now - _LONGEST_GAP * decay.period(half_life)
        if counter.at < known:
            counter = decay.advanced(counter, {}, now, half_life)
        else:
            counter = decay.advanced(counter, borrows, now, half_life)
        self._followed[found.identity] = _Followed(counter, borrows, written_at)

    @property
    def known(self) -> tuple[str, ...]:
        """Return the quotas that are followed."""
        return tuple(self._followed)

    def forget(self, identity: str) -> None:
        """Drop a quota that is gone."""
        self._followed.pop(identity, None)

    def due(self, found: quotas.Quota, now: float, half_life: float) -> decay.Counter | None:
        """Return the counter that is to be written now, once a period; None at other times.

        A quota that has never borrowed has none. One of a moment that is yet to come is written
        at once: by that moment, what siblings have borrowed would be forgotten.
        """
        known = self._followed.get(found.identity)
        is_ahead = found.borrowed_at > now
        if known is None or (not is_ahead and now - known.written_at < decay.period(half_life)):
            return None
        counter = decay.advanced(known.counter, known.borrows, now, half_life)
        counter = counter._replace(at=min(counter.at, now))
        self._followed[found.identity] = _Followed(counter, known.borrows, now)
        return counter if decay.whole(counter) or found.borrowed or is_ahead else None


def change(present: Any, counter: decay.Counter) -> dict[str, Any]:
    """Return the merge patch that makes a status carry a counter."""
    there = present.get("amountSeconds") if isinstance(present, Mapping) else None
    gone = there.keys() if isinstance(there, Mapping) else ()
    amounts: dict[str, str | None] = dict.fromkeys(map(str, gone))
    amounts |= quantity.texts(decay.whole(counter))
    return {"time": durations.moment(counter.at), "amountSeconds": amounts}
