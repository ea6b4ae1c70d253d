"""Which nodes affinity and anti-affinity between pods forbid, while pods move in thought. Pure.

As in kube-scheduler, required terms of three kinds count: affinity of the pod, its anti-affinity,
and the anti-affinity of pods that run. Pods that are terminating count until they are gone.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from descheduler.framework.pods import by_selection, pod_terms, term_index
from descheduler.model import picture, podinfo

UNATTRACTED: Final = "node(s) didn't match pod affinity rules"
REPELS: Final = "node(s) didn't match pod anti-affinity rules"
REPELLED: Final = "node(s) didn't satisfy existing pods anti-affinity rules"

Flags = npt.NDArray[np.bool_]
_Counts = collections.Counter[int]
"""Pods by domain; a domain without any is not in it."""
_Tally = tuple[str, _Counts]
"""Topology, and pods by its domains."""


class PodAffinity:
    """Some nodes in a fixed order; what is counted changes while pods move.

    Pods are only counted by domain for terms that some pod was asked about.
    """

    def __init__(self, seen: picture.Picture, names: Sequence[str]) -> None:
        self._names = names
        self._index = term_index.of(seen)
        self._rows: dict[str, npt.NDArray[np.intp]] = {}
        self._at: dict[str, str] = {}
        """Nodes by uid, of pods that have moved; empty where they are on none."""
        self._holding: dict[pod_terms.Term, _Counts] = {}
        """Pods that have a term of anti-affinity."""
        self._selected: dict[term_index.Terms, tuple[_Tally, ...]] = {}
        """Pods that every one of some terms selects, for the topology of each."""
        self._tallies = by_selection.BySelection[tuple[_Tally, ...]](seen.namespaces)
        """The same, by the pods that they count."""

    # -- asking ------------------------------------------------------------------------------

    def refused(self, pod: podinfo.Pod) -> Mapping[str, Flags]:
        """Return which nodes may not take a pod, by reason; only reasons that there are.

        The pod itself does not count where it is now.
        """
        if not pod.affinity and not self._index.repels:
            return {}
        terms = self._index.attracting(pod), self._index.repelling(pod), self._index.against(pod)
        if not any(terms):
            return {}
        here = self._node_of(pod)
        self.place(pod, "")
        try:
            return {reason: flags for reason, flags in self._by_kind(pod, *terms) if flags.any()}
        finally:
            self.place(pod, here)

    def fitting(self, pod: podinfo.Pod) -> Flags | None:
        """Return which nodes may take a pod; None where all may."""
        refused = self.refused(pod)
        return ~np.logical_or.reduce([*refused.values()]) if refused else None

    def _by_kind(
        self,
        pod: podinfo.Pod,
        attracting: term_index.Terms,
        repelling: term_index.Terms,
        against: term_index.Terms,
    ) -> Iterable[tuple[str, Flags]]:
        if attracting:
            yield UNATTRACTED, self._unattracted(pod, attracting)
        if repelling:
            tallies = (tally for term in repelling for tally in self._selected_by((term,)))
            yield REPELS, self._inside(tallies)
        if against:
            held = ((term.topology_key, self._held_by(term)) for term in against)
            yield REPELLED, self._inside(held)

    def _unattracted(self, pod: podinfo.Pod, terms: term_index.Terms) -> Flags:
        """Return the nodes that miss what a pod requires to be near.

        The first pod of those that want to be near each other may be anywhere where the topology
        is.
        """
        tallies = self._selected_by(terms)
        is_first = not any(counts for _, counts in tallies) and self._index.selects(terms, pod)
        found: Flags = np.zeros(len(self._names), np.bool_)
        for topology_key, counts in tallies:
            domains = self._index.domains(topology_key)
            among = range(domains.count) if is_first else counts
            found |= ~self._in(topology_key, among)
        return found

    def _inside(self, tallies: Iterable[_Tally]) -> Flags:
        """Return the nodes of domains in which something is counted."""
        domains: dict[str, set[int]] = {}
        for topology_key, counts in tallies:
            domains.setdefault(topology_key, set()).update(counts)
        found: Flags = np.zeros(len(self._names), np.bool_)
        for topology_key, some in domains.items():
            found |= self._in(topology_key, some)
        return found

    def _in(self, topology_key: str, domains: Iterable[int]) -> Flags:
        """Return the nodes of some domains of a topology."""
        known = self._index.domains(topology_key)
        rows = self._rows.get(topology_key)
        if rows is None:
            # A node without the label has the number after the last one.
            numbers = [known.of_node.get(name, known.count) for name in self._names]
            rows = np.array(numbers, np.intp)
            if known.count:
                self._rows[topology_key] = rows
        chosen: Flags = np.zeros(known.count + 1, np.bool_)
        chosen[np.fromiter(domains, np.intp)] = True
        return chosen[rows]

    # -- counting ----------------------------------------------------------------------------

    def _held_by(self, term: pod_terms.Term) -> _Counts:
        found = self._holding.get(term)
        if found is None:
            pods = (pod for group in self._index.holders[term] for pod in group)
            found = self._holding[term] = self._counted(term.topology_key, pods)
        return found

    def _selected_by(self, terms: term_index.Terms) -> tuple[_Tally, ...]:
        found = self._selected.get(terms)
        if found is None:
            pods = list(self._index.selected(terms))
            keys = dict.fromkeys(term.topology_key for term in terms)
            found = tuple((key, self._counted(key, pods)) for key in keys)
            self._selected[terms] = found
            self._tallies.add(terms, found)
        return found

    def _counted(self, topology_key: str, pods: Iterable[podinfo.Pod]) -> _Counts:
        domains = self._index.domains(topology_key).of_node
        found = collections.Counter(domains.get(self._node_of(pod), -1) for pod in pods)
        del found[-1]
        return found

    # -- moving ------------------------------------------------------------------------------

    def place(self, pod: podinfo.Pod, node: str) -> str:
        """Count a pod on a node from here on, on none where that is empty; return where it was."""
        before = self._node_of(pod)
        if before == node or not self._index.has(pod):
            return before
        self._at[pod.uid] = node
        for term in self._index.repelling(pod) if self._holding else ():
            counts = self._holding.get(term)
            if counts is not None:
                self._moved((term.topology_key, counts), before, node)
        for tallies in self._tallies.of(pod):
            for tally in tallies:
                self._moved(tally, before, node)
        return before

    def _moved(self, tally: _Tally, before: str, node: str) -> None:
        topology_key, counts = tally
        domains = self._index.domains(topology_key).of_node
        source, target = domains.get(before, -1), domains.get(node, -1)
        if source >= 0:
            counts[source] -= 1
            if not counts[source]:
                del counts[source]
        if target >= 0:
            counts[target] += 1

    def _node_of(self, pod: podinfo.Pod) -> str:
        found = self._at.get(pod.uid)
        return found if found is not None else pod.node
