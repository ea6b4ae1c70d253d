"""Who says what the moves of a round are worth. Pure."""

from descheduler.framework import history, objective, round_plan
from descheduler.gain import gain_per_eviction, measured_load
from descheduler.gain.options import Options
from descheduler.model import picture


class AcceptAll:
    """Lets every move be made that filters and limits let through; implements `rounds.Judge`."""

    def objective(self, seen: picture.Picture, moves: history.History) -> objective.Objective:
        """Return the objective of one round."""
        del seen, moves
        return objective.ACCEPT_ALL

    def decided(self, plan: round_plan.RoundPlan, seen: picture.Picture) -> None:
        """Remember nothing."""


class ByGain:
    """Lets moves be made that gain enough for what they cost; implements `rounds.Judge`."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def objective(self, seen: picture.Picture, moves: history.History) -> objective.Objective:
        """Return the objective of one round."""
        loads = measured_load.Loads(self._options, seen, seen.nodes.values())
        return gain_per_eviction.GainPerEviction(self._options, seen, loads, moves)

    def decided(self, plan: round_plan.RoundPlan, seen: picture.Picture) -> None:
        """Remember nothing."""
