"""How long pods stay where they are after a move: the longer, the more often they have moved. Pure.

A pod that replaces a moved one is the next of its line. Nothing names it; it is recognized by its
workload and its creation, and by the node that the move was to.
"""

from collections.abc import Iterable
from typing import Final

from descheduler.framework.planning import history
from descheduler.model import podinfo

LONGEST: Final = history.DAY
_CREATED_WITHIN: Final = 900.0
"""Seconds after the decision in which a successor is created: a Reservation is placed first."""


class Lines:
    """How often the lines that pods belong to have moved lately."""

    def __init__(self, moves: Iterable[history.Moved]) -> None:
        self._by_workload: dict[str, list[history.Moved]] = {}
        for one in moves:
            if one.workload:
                self._by_workload.setdefault(one.workload, []).append(one)

    def moves_of(self, pod: podinfo.Pod) -> list[history.Moved]:
        """Return the moves of the workload of a pod."""
        controller = pod.controller
        return self._by_workload.get(controller.uid, []) if controller is not None else []

    def turns(self, pod: podinfo.Pod) -> int:
        """Return how often pods of its line have moved so that this one stands where it is."""
        before = [
            one for one in self.moves_of(pod) if one.at <= pod.created <= one.at + _CREATED_WITHIN
        ]
        here = [one for one in before if one.target == pod.node]
        return max((one.turn for one in here or before), default=0)

    def rest(self, pod: podinfo.Pod, now: float, cool_down: float) -> tuple[float, int]:
        """Return how many seconds a pod still has to stay, and after how many moves.

        Every further move doubles the time. A pod that was created later than a successor would be
        stays for the plain time, after a move that is no longer ago than that.
        """
        turns = self.turns(pod)
        lasts = min(cool_down * 2 ** (turns - 1), LONGEST) if turns else cool_down
        moves = (one.at for one in self.moves_of(pod))
        if not turns and not any(now - cool_down < at <= pod.created for at in moves):
            return 0.0, 0
        return max(pod.created + lasts - now, 0.0), max(turns, 1)
