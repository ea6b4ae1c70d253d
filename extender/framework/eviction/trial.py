"""A what-if without some claims: one node and the values of the whole cluster. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from extender.framework import cycle, nominations, pipeline, victim_units, views


class Trial:
    """One node, as row 0, as it would be without some claims, wherever in the cluster these are.

    What is taken out of the node itself changes its figures; what is taken out elsewhere changes
    only the values that plug-ins keep of the cluster. Nothing of it reaches the live state.
    Pods that are of no use without each other leave and stay together.
    """

    def __init__(
        self,
        plugins: pipeline.Pipeline,
        pod: views.PodInfo,
        view: views.View,
        row: int,
        now: float,
        *,
        whole: bool = True,
    ) -> None:
        """`whole`: whether what a claim cannot be without leaves with it."""
        self.plugins, self.pod, self.live, self.now = plugins, pod, view, now
        self.node = view.names[row]
        self.gone: dict[str, views.Claim] = {}
        self.judgements = 0
        """How often filters were asked."""
        self._row = row
        self._units = victim_units.Units(plugins if whole else pipeline.Pipeline(), view, self.node)
        self._asked: dict[str, views.Claim] = {}
        self._times: Counter[str] = Counter()
        self._ignored = frozenset(nominations.ignored(pod, view, row))
        self._cluster = dict(nominations.seen_by(pod, view, row)[0].cluster)
        self._one: views.View | None = None

    def live_node(self) -> views.NodeInfo:
        """Return the node and the claims on it as they are."""
        return self.live.node(self._row)

    # -- who leaves ------------------------------------------------------------------------

    @property
    def leads(self) -> tuple[views.Claim, ...]:
        """Return what has left, of claims that leave together the one that stands for all."""
        return tuple(self._asked.values())

    def unit(self, claim: views.Claim) -> victim_units.Unit | None:
        """Return what leaves with a claim; None where these are too many."""
        return self._units.of(claim)

    def lead(self, claim: views.Claim) -> views.Claim:
        """Return the claim that stands for all that leave with one."""
        unit = self._units.of(claim)
        return claim if unit is None else unit.lead

    def _together(self, lead: views.Claim) -> tuple[views.Claim, ...]:
        unit = self._units.of(lead)
        return (lead,) if unit is None else unit.claims

    def remove(self, claims: Iterable[views.Claim]) -> None:
        """Let claims leave, each with all that cannot be without it."""
        for claim in map(self.lead, claims):
            if claim.id in self._asked or claim.id in self._ignored:
                continue
            self._asked[claim.id] = claim
            for one in self._together(claim):
                self._times[one.id] += 1
                if one.id not in self.gone:
                    self.gone[one.id] = one
                    self._advance(views.ClaimDelta(one.id, one, None))

    def put_back(self, claims: Iterable[views.Claim]) -> None:
        """Let claims stay after all, each with all that left because of it."""
        for claim in map(self.lead, claims):
            if self._asked.pop(claim.id, None) is None:
                continue
            for one in self._together(claim):
                self._times[one.id] -= 1
                if not self._times[one.id]:
                    del self.gone[one.id]
                    self._advance(views.ClaimDelta(one.id, None, one))

    def first(
        self, claims: Iterable[views.Claim], why: Callable[[views.Claim], bool]
    ) -> views.Claim | None:
        """Return the first of claims that leave one after the other of which something is true.

        Each is asked about without those before it; afterwards nothing has changed.
        """
        before, gone = dict(self._cluster), dict(self.gone)
        found = None
        for claim in claims:
            if why(claim):
                found = claim
                break
            if claim.id not in self.gone:
                self.gone[claim.id] = claim
                self._advance(views.ClaimDelta(claim.id, claim, None))
        self._cluster, self.gone, self._one = before, gone, None
        return found

    def _advance(self, delta: views.ClaimDelta) -> None:
        views.advance(self._cluster, self.live.trackers, delta)
        self._one = None

    @property
    def view(self) -> views.View:
        """Return the node without what has left."""
        if self._one is None:
            here = {ident for ident, claim in self.gone.items() if claim.node == self.node}
            without = views.Changes(remove=here | self._ignored)
            self._one = self.live.changed({self._row: without}, cluster=self._cluster)
        return self._one

    def everywhere(self) -> views.View:
        """Return all nodes under the values of a cluster without what has left."""
        return msgspec.structs.replace(self.live, cluster=dict(self._cluster))

    def judged(self) -> tuple[cycle.Cycle, cycle.Refusal | None]:
        """Return what PreFilter prepared, and why the node refuses the pod, None if it passes."""
        self.judgements += 1
        asked = self.plugins.cycle(self.pod, self.view)
        return asked, self.plugins.filter(asked, self.view, pipeline.ROW, self.now).refusal(0)

    def passes(self) -> bool:
        """Whether every filter passes."""
        return self.judged()[1] is None

    def is_silent(self, plugin: str) -> bool:
        """Whether a plug-in does not refuse the pod, or another one does before it."""
        refusal = self.judged()[1]
        return refusal is None or refusal.plugin != plugin
