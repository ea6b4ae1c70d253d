"""What if some claims were gone: one node and the values of the whole cluster. Pure."""

import dataclasses
from collections.abc import Iterable

from extender.framework import cycle, nominations, pipeline, views


class Trial:
    """One node, as row 0, as it would be without some claims, wherever in the cluster these are.

    What is taken out of the node itself changes its figures; what is taken out elsewhere changes
    only the values that plug-ins keep of the cluster. Nothing of it reaches the live state.
    """

    def __init__(
        self,
        plugins: pipeline.Pipeline,
        pod: views.PodInfo,
        view: views.View,
        row: int,
        now: float,
    ) -> None:
        self.plugins, self.pod, self.live, self.now = plugins, pod, view, now
        self.node = view.names[row]
        self.gone: dict[str, views.Claim] = {}
        self._row = row
        self._ignored = frozenset(nominations.ignored(pod, view, row))
        self._cluster = dict(nominations.seen_by(pod, view, row)[0].cluster)
        self._one: views.View | None = None

    def live_claims(self) -> tuple[views.Claim, ...]:
        """Return the claims on the node as they are."""
        return self.live.node(self._row).claims

    def remove(self, claims: Iterable[views.Claim]) -> None:
        """Let claims leave."""
        for claim in claims:
            if claim.id not in self.gone and claim.id not in self._ignored:
                self.gone[claim.id] = claim
                self._advance(views.ClaimDelta(claim.id, claim, None))

    def put_back(self, claims: Iterable[views.Claim]) -> None:
        """Let claims stay after all."""
        for claim in claims:
            if self.gone.pop(claim.id, None) is not None:
                self._advance(views.ClaimDelta(claim.id, None, claim))

    def _advance(self, delta: views.ClaimDelta) -> None:
        views.advance(self._cluster, self.live.trackers, delta)
        self._one = None

    @property
    def view(self) -> views.View:
        """Return the node without what has left."""
        if self._one is None:
            here = {ident for ident, claim in self.gone.items() if claim.node == self.node}
            one = self.live.with_claims(self._row, remove=here | self._ignored)
            self._one = dataclasses.replace(one, cluster=dict(self._cluster))
        return self._one

    def everywhere(self) -> views.View:
        """Return all nodes under the values of a cluster without what has left."""
        return dataclasses.replace(self.live, cluster=dict(self._cluster))

    def judged(self) -> tuple[cycle.Cycle, cycle.Refusal | None]:
        """Return what PreFilter prepared, and why the node refuses the pod, None if it passes."""
        asked = self.plugins.cycle(self.pod, self.view)
        return asked, self.plugins.filter(asked, self.view, pipeline.ROW, self.now).refusal(0)

    def passes(self) -> bool:
        """Whether every filter passes."""
        return self.judged()[1] is None

    def is_silent(self, plugin: str) -> bool:
        """Whether a plug-in does not refuse the pod, or another one does before it."""
        refusal = self.judged()[1]
        return refusal is None or refusal.plugin != plugin
