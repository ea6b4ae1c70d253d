"""Reserve and Unreserve: one pod on one node, all or nothing, without an await in between."""

import dataclasses
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence

import msgspec
import orjson

from api import names
from api.wire import durations
from extender.framework import nominations, permit, pipeline, verdicts, views
from extender.state import allocations, deltas, ledger, records
from extender.verbs import pod_truth
from process.configuration import switches
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

PAYLOAD_VERSION = 1


class Reserved(msgspec.Struct, frozen=True, gc=False):
    """A pod that is assumed on a node, and what will be written on it."""

    pod: records.PodRecord
    version: str
    node: str
    annotations: Mapping[str, str]
    asked: pipeline.Cycle | None = None
    """What plug-ins prepared when it was reserved; Permit goes by it. None: none was asked."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reserving:
    """Asks every plug-in about one pod and one node, and counts what they grant."""

    ledger: ledger.Ledger
    plugins: pipeline.Pipeline
    switches: switches.Switches
    clock: clocks.Clock
    new_id: Callable[[], str]

    def reserve(self, truth: pod_truth.Truth, node: str) -> Reserved | str:
        """Run every filter again and reserve in every plug-in; a refusal leaves nothing behind."""
        pod, now = truth.pod, self.clock.now()
        assert pod is not None
        view = self.ledger.cluster.view(node)
        row = view.rows.get(node)
        if row is None:
            return f"node {node} is not known"
        granted: dict[str, verdicts.Grant] = {}
        grounds: Sequence[str] = ()
        asked: pipeline.Cycle | None = None
        if self.switches.asks:
            # This node alone: what the others are like no longer matters.
            request = views.PodInfo.of(pod)
            shown, row = nominations.seen_by(request, view, row)
            asked = self.plugins.cycle(request, shown)
            refusal = self._granted(asked, shown, row, now)
            if isinstance(refusal, str):
                return refusal
            granted = refusal
            grounds = self.plugins.grounds(asked, shown, row, now)
        allocated = {name: grant.allocation for name, grant in granted.items() if grant.allocation}
        changes = [change for grant in granted.values() for change in grant.changes]
        try:
            self.ledger.assume(
                pod, node, now, self.clock.monotonic(), allocated or allocations.NONE, changes
            )
        except deltas.StaleError as error:
            return f"a plug-in reserved what is no longer so; nothing was bound: {error}"
        notes = self._annotations(node, now, granted, grounds)
        return Reserved(pod, truth.version, node, notes | self._recorded(allocated), asked)

    def _recorded(self, allocated: Mapping[str, msgspec.Struct]) -> dict[str, str]:
        return allocations.written(self.plugins.codecs, allocated)

    def _annotations(
        self,
        node: str,
        now: float,
        granted: Mapping[str, verdicts.Grant],
        grounds: Sequence[str],
    ) -> dict[str, str]:
        """Return what is written on the pod together with its node."""
        payload = {
            "v": PAYLOAD_VERSION,
            "id": self.new_id(),
            "node": node,
            "at": durations.precise_moment(now),
            "reasons": grounds,
            "granted": {name: grant.told() for name, grant in granted.items()},
        }
        notes = {names.PLACEMENT: orjson.dumps(payload).decode()}
        for grant in granted.values():
            notes |= {**grant.annotations, **dict.fromkeys(grant.bind_times, str(int(now * 1e9)))}
        return notes

    def _granted(
        self, asked: pipeline.Cycle, view: views.View, row: int, now: float
    ) -> dict[str, verdicts.Grant] | str:
        refusal = self.plugins.filter(asked, view, pipeline.alone(row), now).refusal(0)
        if refusal is None:
            granted = self.plugins.reserve(asked, view, row)
            if not isinstance(granted, pipeline.Refusal):
                return granted
            refusal = granted
        sentence = self.plugins.sentence(asked, view, row, refusal, now)
        return self._told(asked, sentence) or {}

    def _told(self, asked: pipeline.Cycle, sentence: str) -> str:
        """Return the sentence of a refusal that holds; in observe mode it is only logged."""
        if self.switches.enforces:
            return sentence
        logger.info("would not bind pod=%s reason=%s", asked.pod.key, sentence)
        return ""

    # -- Permit ----------------------------------------------------------------------------

    def permits(self, reserved: Reserved) -> bool:
        """Whether any plug-in may let a pod wait: those that read it and implement Permit."""
        asked = reserved.asked
        return self.switches.enforces and asked is not None and self.plugins.permits_of(asked)

    def permission(self, reserved: Reserved) -> permit.Permission:
        """Ask whether a pod that is assumed on its node may be bound now.

        By what was prepared before it was assumed, as kube-scheduler's cycle state is: with its own
        claim counted, PreFilter may refuse it, and then no plug-in would be asked.
        """
        if reserved.asked is None:
            return permit.Permission()
        view = self.ledger.cluster.view(reserved.node)
        return self.plugins.permit(reserved.asked, view, self.clock.now())

    def judging(self) -> Hashable:
        """Return a value that is another one once other plug-ins judge nodes, or none does."""
        return self.plugins.filters, self.switches.enforces

    def recheck(self, reserved: Reserved, *, is_same: bool = False) -> str:
        """Run every filter once more on the node as it is now, without the pod's own claim.

        What was allocated is still the pod's: it was counted all the time. Where the node `is_same`
        as when it was reserved, filters that depend on nothing else would say what they said.
        """
        view, now = self.ledger.cluster.view(reserved.node), self.clock.now()
        if is_same and reserved.asked and self._is_of_node(reserved.asked, view):
            return ""
        row = view.rows.get(reserved.node)
        if row is None:
            return f"node {reserved.node} is not known"
        request = views.PodInfo.of(reserved.pod)
        ignored = nominations.ignored(request, view, row)
        one = view.with_claims(row, remove={request.uid, *ignored})
        asked = self.plugins.cycle(request, one)
        refusal = self.plugins.filter(asked, one, pipeline.ROW, now).refusal(0)
        if refusal is None:
            return ""
        return self._told(asked, self.plugins.sentence(asked, one, 0, refusal, now))

    def _is_of_node(self, asked: pipeline.Cycle, view: views.View) -> bool:
        """Whether filters judge a pod by its node alone, besides what Permit looks at."""
        permits = {plugin.name for plugin in self.plugins.permits}
        return not any(name in view.cluster for name in asked.prepared if name not in permits)
