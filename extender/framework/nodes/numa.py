"""Aligns what several plug-ins allocate from the NUMA nodes of one node."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec
import numpy as np

from extender.framework import cycle, protocols, verdicts, views
from extender.framework.nodes import hints, node_classes, row_memo

NAME = "NUMATopology"
_MOST_REFUSALS: Final = 1024
_LONGEST: Final = 512
"""Characters of the figures behind a refusal; resources have names that people choose."""
MOST_TRIED: Final = 64
"""Trials of one call beyond which nodes are left out, once ..."""
ENOUGH: Final = 100
"""... so many nodes fit: as many as kube-scheduler looks for itself, at least."""
_ODD: Final = np.int64(-7046029254386353131)
"""An odd number with which digests are mixed."""
_ANYWHERE: Final = hints.Merged(hints.ANYWHERE, preferred=True, admitted=True)
_UNKNOWN: Final = hints.Topology()
UNALIGNED = verdicts.Status("node cannot align what the pod needs by its NUMA topology policy")

UNTRIED = cycle.Refusal(NAME, verdicts.Status("enough other nodes fit; node was not looked at"))


@dataclasses.dataclass(frozen=True, slots=True)
class Aligned:
    """The hint providers, and who knows how a node aligns."""

    providers: tuple[protocols.HintProvider, ...] = ()
    source: protocols.TopologySource | None = None
    trials_kept: "Trials" = dataclasses.field(default_factory=lambda: Trials(), compare=False)
    screens: Mapping[str, protocols.TrialScreen] = dataclasses.field(init=False)
    """The providers that tell where a trial is needed."""
    classes: Mapping[str, protocols.NodeClasses] = dataclasses.field(init=False)
    """Who tells on which nodes a trial ends alike."""
    names: frozenset[str] = dataclasses.field(init=False)
    """Of the providers."""

    def __post_init__(self) -> None:
        """Find out once who is asked what: asking an object for its methods is slow."""
        found = {p.name: p for p in self.providers if isinstance(p, protocols.TrialScreen)}
        object.__setattr__(self, "screens", found)
        asked = [*self.providers, *((self.source,) if self.source is not None else ())]
        alike = {p.name: p for p in asked if isinstance(p, protocols.NodeClasses)}
        object.__setattr__(self, "classes", alike)
        object.__setattr__(self, "names", frozenset(p.name for p in self.providers))

    def concerns(self, asked: cycle.Cycle) -> bool:
        """Whether a pod takes anything that is aligned."""
        return not self.names.isdisjoint(asked.prepared)

    def trials(
        self, asked: cycle.Cycle, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Flags | None:
        """Return for which candidates only a trial tells whether they can align; None: for none."""
        flags: verdicts.Flags | None = None
        for plugin in self.providers:
            prepared = asked.prepared.get(plugin.name)
            if prepared is None:
                continue
            screen = self.screens.get(plugin.name)
            if screen is None:
                return np.ones(rows.size, dtype=np.bool_)
            found = screen.needs_trial(prepared, view, rows)
            if found is not None:
                flags = found if flags is None else flags | found
        if self.source is None or self.source.name in asked.prepared:
            return flags
        # No provider knows which nodes have a policy.
        flags = np.zeros(rows.size, dtype=np.bool_) if flags is None else flags.copy()
        for place in np.flatnonzero(~flags).tolist():
            policy = self.source.topology(None, view, int(rows[place])).policy
            flags[place] = policy is not hints.Policy.NONE
        return flags

    def merged(self, asked: cycle.Cycle, view: views.View, row: int) -> hints.Merged:
        """Return from which NUMA nodes all providers allocate."""
        topology = self._topology(asked, view, row)
        if topology.policy is hints.Policy.NONE:
            return _ANYWHERE
        return hints.merge(topology, [found for _, found in self._offered(asked, view, row)])

    def _topology(self, asked: cycle.Cycle, view: views.View, row: int) -> hints.Topology:
        if self.source is None:
            return _UNKNOWN
        return self.source.topology(asked.prepared.get(self.source.name), view, row)

    def _offered(
        self, asked: cycle.Cycle, view: views.View, row: int
    ) -> Iterator[tuple[str, hints.Hints]]:
        """Yield every resource of the pod with the hints for it."""
        for plugin in self.providers:
            if plugin.name in asked.prepared:
                yield from plugin.hints(asked.prepared[plugin.name], view, row).items()

    def diagnose(self, asked: cycle.Cycle, view: views.View, row: int) -> verdicts.Diagnosis:
        """Say which hints the policy of a node could not merge, as the kubelet writes them."""
        topology = self._topology(asked, view, row)
        if topology.policy is hints.Policy.NONE:
            return verdicts.Diagnosis("")
        offered = dict(self._offered(asked, view, row))
        because = "; ".join(hints.reasons(topology.policy, offered))
        name = view.names[row]
        lacking = sorted(resource for resource, found in offered.items() if found == ())
        helps = [f"more {resource} free on one NUMA node of {name}" for resource in lacking]
        if not lacking:
            helps = [f"{' and '.join(sorted(offered))} free on the same NUMA nodes of {name}"]
        if topology.policy is not hints.Policy.BEST_EFFORT:
            helps.append(f"a weaker topology policy of {name}, or of the pod, such as BestEffort")
        text = f"policy {topology.policy.value}: {because}"
        return verdicts.Diagnosis(text[:_LONGEST], tuple(helps))

    def allocate(
        self, asked: cycle.Cycle, view: views.View, row: int
    ) -> dict[str, msgspec.Struct] | cycle.Refusal:
        """Let every provider allocate from the merged NUMA nodes of one node."""
        if not self.concerns(asked):
            return {}
        merged = self.merged(asked, view, row)
        if not merged.admitted:
            return cycle.Refusal(NAME, UNALIGNED)
        allocations: dict[str, msgspec.Struct] = {}
        for plugin in self.providers:
            prepared = asked.prepared.get(plugin.name)
            if prepared is None:
                continue
            answer = plugin.allocate(prepared, view, row, merged.mask)
            if isinstance(answer, verdicts.Status):
                return cycle.Refusal(plugin.name, answer)
            if answer is not None:
                allocations[plugin.name] = answer
        return allocations

    def refusals(
        self, asked: cycle.Cycle, view: views.View, rows: verdicts.Rows
    ) -> tuple[verdicts.Column, list[cycle.Refusal]]:
        """Return by candidate 0, or the place, from 1, of why it cannot take the pod."""
        kept = self.trials_kept
        kept.make_room()
        if view.revisions is None:
            # A what-if, perhaps of what a claim lends: digests do not say that.
            found = numbers(kept, [self.refusal(asked, view, row) for row in rows.tolist()])
            return found, kept.refusals
        key = asked.key

        def tried(changed: verdicts.Rows) -> verdicts.Column:
            def trial(place: int) -> int:
                return kept.number(self.refusal(asked, view, int(changed[place])))

            if changed.size <= MOST_TRIED:
                budget = node_classes.UNBOUNDED
            else:
                passing = int(np.count_nonzero(kept.results.known(key, view, rows) == 0))
                budget = node_classes.Budget(MOST_TRIED, ENOUGH, passing)
            return kept.classes.get(key, self._alike(asked, view, changed), trial, budget)

        found = kept.results.get(key, view, rows, tried)
        untried = found == row_memo.LATER
        if np.count_nonzero(untried):
            found[untried] = kept.number(UNTRIED)
        return found, kept.refusals

    def _alike(self, asked: cycle.Cycle, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Return numbers that are equal for candidates on which a trial ends alike."""
        concerned = [p.name for p in self.providers if p.name in asked.prepared]
        if self.source is not None and self.source.name not in concerned:
            concerned.append(self.source.name)
        joined = np.zeros(rows.size, dtype=np.int64)
        for name in concerned:
            if name not in self.classes:
                # A reader looks at every node, and again whenever it has changed.
                assert view.revisions is not None
                return view.revisions[rows]
            joined = joined * _ODD + self.classes[name].alike(view, rows)
        return joined

    def refusal(self, asked: cycle.Cycle, view: views.View, row: int) -> cycle.Refusal | None:
        """Return why a node cannot take the pod; what is refused here never fails a bind."""
        found = self.allocate(asked, view, row)
        return found if isinstance(found, cycle.Refusal) else None

    def judged(
        self, asked: cycle.Cycle, view: views.View, row: int, now: float
    ) -> cycle.Refusal | None:
        """Return why the providers refuse one node, by their filters or by a trial."""
        rows = np.array((row,), dtype=np.intp)
        for plugin in self.providers:
            prepared = asked.prepared.get(plugin.name)
            if prepared is None or not isinstance(plugin, protocols.Filter):
                continue
            verdict = plugin.filter(prepared, view, rows, now)
            if verdict is not None and verdict.codes[0]:
                return cycle.Refusal(plugin.name, verdict.statuses[int(verdict.codes[0]) - 1])
        return self.refusal(asked, view, row)


def numbers(kept: "Trials", found: Iterable[cycle.Refusal | None]) -> verdicts.Column:
    """Return 0 for none, else the place of a refusal, for several."""
    return np.array([kept.number(one) for one in found], dtype=np.int64)


class Trials:
    """How trials ended; which refusal a number stands for."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget every result, so that all trials are repeated."""
        self.results = row_memo.RowMemo()
        self.classes = node_classes.NodeClasses()
        self.refusals: list[cycle.Refusal] = []
        self._numbers: dict[cycle.Refusal, int] = {}

    def make_room(self) -> None:
        """Start over where refusals of too many kinds, such as of resources, are known."""
        if len(self.refusals) >= _MOST_REFUSALS:
            self.forget()

    def number(self, refusal: cycle.Refusal | None) -> int:
        """Return 0 for none, else the place of a refusal, from 1."""
        if refusal is None:
            return 0
        if refusal not in self._numbers:
            self.refusals.append(refusal)
            self._numbers[refusal] = len(self.refusals)
        return self._numbers[refusal]
