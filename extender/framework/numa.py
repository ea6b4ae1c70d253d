"""Aligns what several plug-ins allocate from the NUMA nodes of one node."""

import dataclasses
from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from extender.framework import cycle, hints, protocols, row_memo, verdicts, views

NAME = "NUMATopology"
_MOST_REFUSALS: Final = 1024
_LONGEST: Final = 512
"""Characters of the figures behind a refusal; resources have names that people choose."""
UNALIGNED = verdicts.Status("node cannot align what the pod needs by its NUMA topology policy")


@dataclasses.dataclass(frozen=True, slots=True)
class Aligned:
    """The hint providers, and who knows how a node aligns."""

    providers: tuple[protocols.HintProvider, ...] = ()
    source: protocols.TopologySource | None = None
    trials_kept: "Trials" = dataclasses.field(default_factory=lambda: Trials(), compare=False)

    def concerns(self, asked: cycle.Cycle) -> bool:
        """Whether a pod takes anything that is aligned."""
        return any(plugin.name in asked.prepared for plugin in self.providers)

    def trials(
        self, asked: cycle.Cycle, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Flags | None:
        """Return for which candidates only a trial tells whether they can align; None: for all."""
        flags = np.zeros(rows.size, dtype=np.bool_)
        for plugin in self.providers:
            prepared = asked.prepared.get(plugin.name)
            if prepared is None:
                continue
            if not isinstance(plugin, protocols.TrialScreen):
                return None
            flags |= plugin.needs_trial(prepared, view, rows)
        if self.source is not None and self.source.name not in asked.prepared:
            # Nobody who was asked knows which nodes have a policy.
            for place in np.flatnonzero(~flags).tolist():
                policy = self.source.topology(None, view, int(rows[place])).policy
                flags[place] = policy is not hints.Policy.NONE
        return flags

    def merged(self, asked: cycle.Cycle, view: views.View, row: int) -> hints.Merged:
        """Return from which NUMA nodes all providers allocate."""
        topology = self._topology(asked, view, row)
        if topology.policy is hints.Policy.NONE:
            return hints.Merged(hints.ANYWHERE, preferred=True, admitted=True)
        return hints.merge(topology, [found for _, found in self._offered(asked, view, row)])

    def _topology(self, asked: cycle.Cycle, view: views.View, row: int) -> hints.Topology:
        if self.source is None:
            return hints.Topology()
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

        def tried(changed: verdicts.Rows) -> verdicts.Column:
            found = [self.refusal(asked, view, row) for row in changed.tolist()]
            return np.array([kept.number(one) for one in found], dtype=np.int64)

        kept.make_room()
        return kept.results.get(asked.key, view, rows, tried), kept.refusals

    def refusal(self, asked: cycle.Cycle, view: views.View, row: int) -> cycle.Refusal | None:
        """Return why a node cannot take the pod; what is refused here never fails a bind."""
        found = self.allocate(asked, view, row)
        return found if isinstance(found, cycle.Refusal) else None


class Trials:
    """How trials ended; which refusal a number stands for."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Try everything anew."""
        self.results = row_memo.RowMemo()
        self.refusals: list[cycle.Refusal] = []
        self._numbers: dict[cycle.Refusal, int] = {}

    def make_room(self) -> None:
        """Start anew where refusals of too many kinds, such as of resources, are known."""
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
