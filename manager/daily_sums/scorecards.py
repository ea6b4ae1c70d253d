"""The scorecards of all agents of today, added up. Pure.

Agents report sums of their day, so nothing is lost when reports or leaders are missed. Of each node
the largest figures of the day count: a report that begins anew, after a node has lost its state,
adds nothing twice.
"""

from typing import Final

from api.wire import durations
from domain.daily_sums import effects

MOST_NODES: Final = 50_000
"""Names of nodes on one day."""
SLACK_SECONDS: Final = 120.0
"""How much the clocks of a node and of ours may differ."""


class Today:
    """What agents did on one day so far."""

    def __init__(self, date: str, stored: effects.Effects = effects.NOTHING) -> None:
        """`stored`: what an earlier leader has added up of the day."""
        self.date = date
        self._begin = durations.timestamp(f"{date}T00:00:00Z")
        self._stored: effects.Effects | None = stored
        self._others = effects.NOTHING
        """Of nodes that had left before this leader began."""
        self._marks: dict[str, effects.Effects] = {}
        self._sum = effects.NOTHING

    def take(self, node: str, card: effects.Card | None, cores: float, now: float) -> None:
        """Take what the agent of a node reports."""
        if card is None or card.date != self.date:
            return
        before = self._marks.get(node)
        if before is None and len(self._marks) >= MOST_NODES:
            return
        found = effects.bounded(card.effects, cores, now - self._begin + SLACK_SECONDS)
        if before is not None:
            found = before.most(found)
            if found == before:
                return
            self._sum = self._sum.less(before)
        self._marks[node] = found
        self._sum = self._sum.plus(found)

    def whole(self) -> effects.Effects:
        """Return the sums, once all nodes were taken."""
        if self._stored is not None:
            self._others, self._stored = self._stored.less(self._sum), None
        return self._others.plus(self._sum)
