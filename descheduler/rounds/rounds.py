"""One round after another while this replica leads: look, decide, carry out, report."""

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from descheduler.framework import objective, protocols
from descheduler.framework.planning import history, isolation, pipeline, profiles, round_plan
from descheduler.model import picture
from descheduler.receipts import receipt
from descheduler.rounds import carry_out, configured, round_metrics
from process.configuration import switches
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

SWITCH: Final = "descheduler"
"""Its key among the live switches."""
_RETRY_SECONDS: Final = 5.0
_FOREVER_SECONDS: Final = 1e9
OFF: Final = "off"
WAITING: Final = "waiting"
SKIPPED: Final = "skipped"
FAILED: Final = "failed"
PLANNED: Final = "planned"


class Sight(Protocol):
    """What a round decides on."""

    def waits_for(self) -> str | None:
        """Return what has to become current first, None where nothing has."""

    async def look(self) -> tuple[picture.Picture, protocols.Targets | None]:
        """Return the cluster as it is now, and where the scheduler would take its pods."""


class Judge(Protocol):
    """Says what moves are worth, and remembers what was decided."""

    @property
    def moves(self) -> history.History:
        """Return the moves that an earlier leader has remembered."""

    def objective(self, seen: picture.Picture, moves: history.History) -> objective.Objective:
        """Return the objective of one round; `moves` are those of the last time."""

    def permitted(
        self, configured: Sequence[profiles.Profile], now: float
    ) -> tuple[profiles.Profile, ...]:
        """Return the profiles; one that may not move pods at present is in dry run."""

    def decided(
        self, plan: round_plan.RoundPlan, seen: picture.Picture
    ) -> Mapping[str, receipt.Receipt]:
        """Take in what a round decided; return the receipts of its moves by uid of the pod."""

    def halted(self, now: float) -> Mapping[str, str]:
        """Return by profile why it is halted at present."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one round."""

    result: str
    message: str
    plan: round_plan.RoundPlan | None = None
    at: float = 0.0
    """When it was decided, in seconds since the epoch."""
    seconds: float = 0.0
    """How long it took to decide."""
    moved: int = 0


NO_ROUND: Final = Outcome(WAITING, "no round has run yet")


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What rounds are made of."""

    chosen: configured.Configured
    sight: Sight
    judge: Judge
    live: switches.Switches
    figures: round_metrics.RoundMetrics
    clock: clocks.Clock
    dry_run: bool = False
    """Whether settings say so, whatever the file says."""


class Rounds:
    """Runs rounds; what plug-ins remember lasts as long as the process."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._memory = round_plan.NO_MEMORY
        self.last = NO_ROUND

    async def run(self, carrying: carry_out.CarryOut) -> None:
        """Run rounds until cancelled; without an interval a single one."""
        clock, interval = self._parts.clock, self._parts.chosen.head.descheduling_interval
        while True:
            before, outcome = self.last, await self.once(carrying)
            is_news = outcome.plan is not None or outcome.message != before.message
            logger.log(
                logging.INFO if is_news else logging.DEBUG,
                "round ended result=%s outcome=%s", outcome.result, outcome.message,
            )  # fmt: skip
            has_run = outcome.result not in {OFF, WAITING}
            if interval or not has_run:
                await clock.sleep(interval or _RETRY_SECONDS)
            else:
                await clock.sleep(_FOREVER_SECONDS)

    async def once(self, carrying: carry_out.CarryOut) -> Outcome:
        """Run one round."""
        self.last = outcome = await self._round(carrying)
        self._parts.figures.ended(outcome.result)
        return outcome

    async def _round(self, carrying: carry_out.CarryOut) -> Outcome:
        parts = self._parts
        if not parts.live.asks:
            return Outcome(OFF, f"no round: the live switch {SWITCH} is off")
        if not parts.chosen.looks:
            return Outcome(SKIPPED, "no round: no plug-in looks for pods to move")
        if why := parts.sight.waits_for():
            return Outcome(WAITING, f"no round: {why}")
        seen, targets = await parts.sight.look()
        began = parts.clock.monotonic()
        plan, error = isolation.tried(lambda: self._plan(seen, targets))
        if plan is None:
            logger.error("round failed error=%s", error)
            return Outcome(FAILED, f"no round: {error}", at=seen.now)
        seconds = parts.clock.monotonic() - began
        self._memory = plan.memory
        parts.figures.decided(plan, seen.now, seconds)
        receipts = parts.judge.decided(plan, seen)
        moved = await carrying.apply(plan, seen, receipts)
        result = SKIPPED if plan.skipped else PLANNED
        message = "; ".join([plan.summary, *parts.judge.halted(seen.now).values()])
        return Outcome(result, message, plan, seen.now, seconds, moved)

    def _plan(
        self, seen: picture.Picture, targets: protocols.Targets | None
    ) -> round_plan.RoundPlan:
        parts = self._parts
        observes = parts.dry_run or not parts.live.enforces
        chosen = profiles.options(parts.chosen.head, observe=observes)
        known = {**parts.judge.moves, **self._memory.moves}
        moves = history.followed(known, seen, history.KEPT)
        memory = dataclasses.replace(self._memory, moves=moves)
        judged = parts.judge.objective(seen, moves)
        given = profiles.Given(seen, judged, targets, memory)
        permitted = parts.judge.permitted(parts.chosen.profiles, seen.now)
        return pipeline.plan_round(permitted, chosen, given)
