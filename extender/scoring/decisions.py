"""How the totals of recent decisions came about, for people."""

import collections
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api.wire import durations
from domain.scoring import explanation

_MOST: Final = 1000


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The node that filter chose for a pod, or why it left the choice to the scheduler."""

    uid: str
    at: float
    """On the wall clock."""
    explained: explanation.Explanation | None
    undecidable: str = ""

    def document(self) -> dict[str, Any]:
        """Return the decision as people read it."""
        moment = {"at": durations.precise_moment(self.at)}
        if self.explained is None:
            return moment | {"leftToScheduler": self.undecidable}
        found = self.explained
        runner_up = None if found.runner_up is None else _total(found.runner_up)
        return moment | {
            "chosen": _total(found.chosen),
            "runnerUp": runner_up,
            "ties": found.ties,
            "candidates": found.candidates,
        }


class Decisions:
    """The last decision of recent pods by namespace/name; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._by_pod: collections.OrderedDict[str, Decision] = collections.OrderedDict()

    def put(self, pod: str, decision: Decision) -> None:
        """Remember the last decision of a pod."""
        self._by_pod.pop(pod, None)
        self._by_pod[pod] = decision
        if len(self._by_pod) > _MOST:
            self._by_pod.popitem(last=False)

    def get(self, pod: str) -> Decision | None:
        """Return the last decision of a pod."""
        return self._by_pod.get(pod)


def _total(found: explanation.NodeTotal) -> Mapping[str, Any]:
    return {
        "node": found.node,
        "total": found.total,
        "plugins": [msgspec.structs.asdict(one) for one in found.contributions],
    }
