"""How long pods stay where they are after a move: the longer, the more often they have moved. Pure.

A pod that replaces a moved one is the next of its line. Nothing names it; it is recognized by its
workload and its creation, and by the node that the move was to. A line that comes back to nodes
that it has left is moved in a loop: it stays then, until its pods are replaced for another reason.
"""

import itertools
from collections.abc import Iterable
from typing import Final

from descheduler.framework.planning import history
from descheduler.model import podinfo

LONGEST: Final = history.DAY
MOST_RETURNS: Final = 2
"""How often a line may come back to nodes that it has left; then it stays."""
LOOP: Final = "it is moved in a loop: pods of its line came back twice to nodes that they left"
"""Why such a pod stays."""
_RETURN_SECONDS: Final = 6 * history.HOUR
"""A pod that comes back later follows the load of the day, which is no loop."""
_RETURN_RESTS: Final = 4
"""The same in cool-downs, where these are long."""
_REMEMBERED: Final = 4
"""Nodes that a line has left: longer loops are not recognized."""


class Lines:
    """How often the lines that pods belong to have moved lately."""

    def __init__(self, moves: Iterable[history.Moved], cool_down: float) -> None:
        self._cool_down = cool_down
        self._by_workload: dict[str, list[history.Moved]] = {}
        for one in moves:
            if one.workload:
                self._by_workload.setdefault(one.workload, []).append(one)

    def moves_of(self, pod: podinfo.Pod) -> list[history.Moved]:
        """Return the moves of the workload of a pod."""
        controller = pod.controller
        return self._by_workload.get(controller.uid, []) if controller is not None else []

    def line_of(self, pod: podinfo.Pod) -> history.Line:
        """Return the line that ends with a pod which stands where it is."""
        before = self._before(pod)
        if not before:
            return history.NEW
        last = max(before, key=lambda one: (one.turn, one.at))
        left = {last.node: last.at, **last.left}
        return history.Line(
            last.turn,
            max(one.returns + self._is_back(pod, one) for one in before),
            dict(itertools.islice(left.items(), _REMEMBERED)),
        )

    def is_in_a_loop(self, pod: podinfo.Pod) -> bool:
        """Whether moves have led the line of a pod back to nodes that it left, again and again."""
        return bool(self.moves_of(pod)) and self.line_of(pod).returns >= MOST_RETURNS

    def rest(self, pod: podinfo.Pod, now: float) -> tuple[float, int]:
        """Return how many seconds a pod still has to stay, and after how many moves.

        Every further move doubles the time. A pod that was created later than a successor would be
        stays for the plain time, after a move that is no longer ago than that.
        """
        if not self._by_workload:
            return 0.0, 0
        cool_down, all_moves = self._cool_down, self.moves_of(pod)
        turns = max((one.turn for one in self._before(pod)), default=0)
        lasts = min(cool_down * 2 ** (turns - 1), LONGEST) if turns else cool_down
        if not turns and not any(now - cool_down < one.at <= pod.created for one in all_moves):
            return 0.0, 0
        return max(pod.created + lasts - now, 0.0), max(turns, 1)

    def _before(self, pod: podinfo.Pod) -> list[history.Moved]:
        """Return the moves that may have led to a pod: those to its node, else all."""
        within = history.SUCCESSOR_WITHIN
        before = [one for one in self.moves_of(pod) if one.at <= pod.created <= one.at + within]
        return [one for one in before if one.target == pod.node] or before

    def _is_back(self, pod: podinfo.Pod, before: history.Moved) -> bool:
        left = before.at if before.node == pod.node else before.left.get(pod.node)
        within = max(_RETURN_SECONDS, _RETURN_RESTS * self._cool_down)
        return left is not None and pod.created - left <= within
