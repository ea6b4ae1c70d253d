"""Who says what the moves of a round are worth, and what became of moves before. Pure."""

from collections.abc import Mapping, Sequence

from descheduler.framework import objective
from descheduler.framework.planning import history, profiles, round_plan
from descheduler.gain import gain_per_eviction, measured_load
from descheduler.gain.options import Options
from descheduler.model import picture
from descheduler.receipts import ledger, receipt


class LedgerJudge:
    """Judges moves by their gain, halts profiles whose moves do not pay; implements `rounds.Judge`.

    Without targets nothing is known of a gain: then every move is made that filters and limits let
    through.
    """

    def __init__(self, books: ledger.Ledger, options: Options, *, finds_targets: bool) -> None:
        self._books = books
        self._options = options
        self._finds_targets = finds_targets

    def objective(self, seen: picture.Picture, moves: history.History) -> objective.Objective:
        """Return the objective of one round; `moves` are those of the last time."""
        if not self._finds_targets:
            return objective.ACCEPT_ALL
        loads = measured_load.Loads(self._options, seen, seen.nodes.values())
        return gain_per_eviction.GainPerEviction(self._options, seen, loads, moves)

    def permitted(
        self, configured: Sequence[profiles.Profile], now: float
    ) -> tuple[profiles.Profile, ...]:
        """Return the profiles; one that is halted only says what it would move."""
        return self._books.permitted(configured, now)

    def decided(
        self, plan: round_plan.RoundPlan, seen: picture.Picture
    ) -> Mapping[str, receipt.Receipt]:
        """Take in what a round decided; return the receipts of its moves by uid of the pod."""
        return self._books.decided(plan, seen)

    def halted(self, now: float) -> Mapping[str, str]:
        """Return by profile why it is halted at present."""
        return self._books.halted(now)

    @property
    def moves(self) -> history.History:
        """Return the moves that an earlier leader has remembered."""
        return self._books.moves
