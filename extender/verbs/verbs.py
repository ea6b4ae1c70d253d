"""The verbs of the wire as functions from bytes to bytes.

Names are live: answered from the watched state. Full nodes are a what-if: computed on an overlay
that is thrown away, and echoed untouched. Failures of ours are answers with an `Error`.
"""

import dataclasses

from extender.verbs import filter as filtering
from extender.verbs import parts, preempt, prioritize, response

NO_SCORES = response.NO_SCORES
UNKNOWN = filtering.UNKNOWN
Refused = parts.Refused
failure = response.failure


@dataclasses.dataclass(frozen=True, slots=True)
class Verbs(parts.Parts):
    """Answers kube-scheduler from the present view."""

    def filter(self, body: bytes, now: float) -> bytes:
        """Answer a filter call."""
        return filtering.answer(self, body, now)

    def prioritize(self, body: bytes, now: float) -> bytes:
        """Answer a prioritize call."""
        return prioritize.answer(self, body, now)

    def preempt(self, body: bytes, now: float) -> bytes:
        """Answer a preempt call."""
        return preempt.answer(self, body, now)
