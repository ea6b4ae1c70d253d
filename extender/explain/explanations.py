"""Why pods wait: the last word on each pod, for people."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from api.wire import durations
from domain import fairness


@dataclasses.dataclass(frozen=True, slots=True)
class Explanation:
    """The last filter call for a pod."""

    pod: str
    uid: str
    at: float
    mode: str
    asked: int
    passed: int
    reasons: Mapping[str, int]
    """How many nodes were refused, by reason."""
    spelled: Callable[[], Mapping[str, str]] = dict
    """Puts some refused nodes and the figures of that moment into words; few are ever read."""

    def sentence(self) -> str:
        """Return it in one sentence."""
        if not self.reasons:
            return f"{self.passed}/{self.asked} nodes may take it"
        parts = ", ".join(f"{count} {text}" for text, count in self.reasons.items())
        shown = "; ".join(f"{node}: {why}" for node, why in self.spelled().items())
        return f"{self.passed}/{self.asked} nodes may take it: {parts}. {shown}"

    def document(self) -> dict[str, Any]:
        """Return it as a document."""
        return {
            "pod": self.pod,
            "uid": self.uid,
            "at": durations.precise_moment(self.at),
            "mode": self.mode,
            "asked": self.asked,
            "passed": self.passed,
            "reasons": dict(self.reasons),
            "nodes": dict(self.spelled()),
            "sentence": self.sentence(),
        }


class Explanations:
    """The latest explanations; the oldest of the namespace with the most is forgotten first."""

    def __init__(self, most: int = 2000) -> None:
        self._by_pod: fairness.Slots[Explanation] = fairness.Slots(most)

    def put(self, explanation: Explanation) -> bool:
        """Keep an explanation; return whether it says something else than the one before."""
        before = self._by_pod.get(explanation.pod)
        self._by_pod.push(explanation.pod, explanation.pod.partition("/")[0], explanation)
        # Counts differ with every sample of nodes; only another reason is news.
        return before is None or (before.uid, before.passed > 0, set(before.reasons)) != (
            explanation.uid,
            explanation.passed > 0,
            set(explanation.reasons),
        )

    def __contains__(self, pod: object) -> bool:
        return pod in self._by_pod

    def get(self, pod: str) -> Explanation | None:
        """Return what was last said about a pod, by namespace/name."""
        return self._by_pod.get(pod)
