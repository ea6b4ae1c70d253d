"""Cgroups at their birth: values that a runtime set for us, and those that wait for no tick.

What the journal names without a strategy that wants it is handed to the planner after a while: the
strategies see a new container only once the kubelet has named it.
"""

from collections.abc import Callable, Iterable
from typing import Final

from agent.apply import deliveries, enforcer
from agent.decide import catalogue, frozen_look, planner
from agent.model import cgroup_layout, edits

UNKNOWN_SECONDS: Final = 120.0
"""For so long a new cgroup may be unknown to all strategies before what was set there is let go."""


class Births:
    """Moves what was delivered into the journal, and hands the rules of each tick on."""

    def __init__(
        self,
        kept: deliveries.Deliveries,
        frozen: Callable[[frozen_look.Frozen | None], None],
    ) -> None:
        """`frozen` takes the rules of a tick, None where nothing may be set."""
        self._frozen = frozen
        self.problem = ""
        """Why what was delivered is not in the journal."""
        self._kept = kept
        self._since: dict[edits.Key, float] = {}

    def freeze(
        self,
        by: planner.Planner,
        look: catalogue.Look | None,
        arranged: cgroup_layout.Layout | None,
        *,
        may_write: bool,
    ) -> None:
        """Hand the rules on by which containers are answered until the next tick."""
        if look is None or arranged is None or not may_write:
            self.stop()
        else:
            self._frozen(frozen_look.freeze(by, look, arranged))

    def stop(self) -> None:
        """Let nothing more be set."""
        self._frozen(None)

    def settle(self, acting: enforcer.Enforcer, by: planner.Planner, now: float) -> None:
        """Move what was delivered into the journal, and hand on what no strategy wants."""
        if not acting.started:
            return
        by.adopt(self.due(now))
        taken = self._kept.take()
        if not taken:
            return
        self.problem = acting.born(taken)
        if not self.problem:
            self._kept.done(taken)
            self.watch((one.key for one in taken), now)

    def watch(self, keys: Iterable[edits.Key], now: float) -> None:
        """Remember what no strategy may know of yet."""
        self._since |= dict.fromkeys(keys, now)

    def due(self, now: float) -> tuple[edits.Key, ...]:
        """Return what strategies would know by now if they wanted it, each once."""
        found = tuple(k for k, since in self._since.items() if now - since >= UNKNOWN_SECONDS)
        for key in found:
            del self._since[key]
        return found

    def close(self) -> None:
        """Record nothing more."""
        self._kept.close()
