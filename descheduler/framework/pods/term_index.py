"""Which pods are selected by the terms of which others, in one picture. Pure.

Terms are those of required affinity and anti-affinity to pods. Pods that are alike are looked at
once, and pods are only compared where some have terms. Questions are about pods of the picture.
Those that are terminating count until they are gone.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from descheduler.framework.pods import by_selection, pod_terms, pods_alike
from descheduler.model import picture, podinfo

_MOST_LOOKS: Final = 1 << 19
"""Looks at namespaces and pods for the terms of the pods of one namespace."""
_MOST_BY_POD: Final = 64
"""The same for each of its pods, where there are many."""
_NO_LABELS: Final[Mapping[str, str]] = {}
Terms = by_selection.Terms
Group = Sequence[podinfo.Pod]
"""Pods of one template, which share what their terms are read from, and their labels."""


@dataclasses.dataclass(frozen=True, slots=True)
class Domains:
    """The domains of a topology, numbered from 0."""

    of_node: Mapping[str, int]
    """By name of a node that is in any."""
    count: int


NO_DOMAINS: Final = Domains({}, 0)


def of(seen: picture.Picture) -> "TermIndex":
    """Return the index of a picture."""
    found: TermIndex | None = seen.memo.get(__name__)
    if found is None:
        found = seen.memo[__name__] = TermIndex(seen)
    return found


class TermIndex:
    """Finds terms by the pods that they select, and pods by the terms that select them."""

    def __init__(self, seen: picture.Picture) -> None:
        self._seen = seen
        self._domains: dict[str, Domains] = {}
        self._against: dict[tuple[str, int], Terms] = {}

    # -- terms -------------------------------------------------------------------------------

    def repelling(self, pod: podinfo.Pod) -> Terms:
        """Return the terms of a pod's anti-affinity; none of a namespace that has too many."""
        return self._repelling.get(podinfo.likeness(pod), ()) if pod.affinity else ()

    def attracting(self, pod: podinfo.Pod) -> Terms:
        """Return the terms of a pod's affinity; none of a namespace that has too many."""
        return self._attracting.get(podinfo.likeness(pod), ()) if pod.affinity else ()

    @property
    def repels(self) -> bool:
        """Whether any pod has terms of anti-affinity."""
        return bool(self._repelling)

    def against(self, pod: podinfo.Pod) -> Terms:
        """Return the terms of anti-affinity that select a pod."""
        if not self.repels:
            return ()
        key = pod.namespace, id(pod.labels)
        found = self._against.get(key)
        if found is None:
            found = self._against[key] = tuple(self._holding.of(pod))
        return found

    def selects(self, terms: Terms, pod: podinfo.Pod) -> bool:
        """Whether every one of some terms selects a pod."""
        return by_selection.selects(terms, pod, self._seen.namespaces)

    # -- pods --------------------------------------------------------------------------------

    def has(self, pod: podinfo.Pod) -> bool:
        """Whether a pod is on a node and has not ended; others are not counted."""
        return bool(pod.node) and not pod.has_ended and pod.uid in self._seen.pods

    @functools.cached_property
    def holders(self) -> Mapping[pod_terms.Term, Sequence[Group]]:
        """The groups that have each term of anti-affinity."""
        found: dict[pod_terms.Term, list[Group]] = {}
        for key, terms in self._repelling.items():
            for term in terms:
                found.setdefault(term, []).append(self._seen.alike[key])
        return found

    def selected(self, terms: Terms) -> Iterator[podinfo.Pod]:
        """Yield the pods that every one of some terms selects."""
        first, *others = terms
        for name in self._named(first):
            if self._is_covered(first, name):
                for group in self._alike[name].groups(first.selector):
                    if self.selects(tuple(others), group[0]):
                        yield from group

    # -- domains -----------------------------------------------------------------------------

    def domains(self, topology_key: str) -> Domains:
        """Return the domains of a topology; none where no node has the label."""
        if topology_key not in self._node_labels:
            return NO_DOMAINS
        found = self._domains.get(topology_key)
        if found is None:
            numbers: dict[str, int] = {}
            nodes = ((name, node.labels) for name, node in self._seen.nodes.items())
            of_node = {
                name: numbers.setdefault(domain, len(numbers))
                for name, labels in nodes
                if (domain := labels.get(topology_key))
            }
            found = self._domains[topology_key] = Domains(of_node, len(numbers))
        return found

    @functools.cached_property
    def _node_labels(self) -> frozenset[str]:
        return frozenset[str]().union(*(node.labels for node in self._seen.nodes.values()))

    # -- effort ------------------------------------------------------------------------------

    @functools.cached_property
    def _alike(self) -> Mapping[str, pods_alike.Alike]:
        found: dict[str, pods_alike.Alike] = {}
        for (name, _, _), pods in self._seen.alike.items():
            found.setdefault(name, pods_alike.Alike()).extend(pods)
        return found

    @functools.cached_property
    def _holding(self) -> by_selection.BySelection[pod_terms.Term]:
        found = by_selection.BySelection[pod_terms.Term](self._seen.namespaces)
        for term in self.holders:
            found.add((term,), term)
        return found

    @functools.cached_property
    def _repelling(self) -> Mapping[podinfo.Likeness, Terms]:
        """The terms of anti-affinity, each of a topology that some node is in."""
        found = {
            key: tuple(term for term in terms if term.topology_key in self._node_labels)
            for key, terms in self._read(pod_terms.required_anti_affinity)
        }
        return self._affordable(found, lambda terms: [(term,) for term in terms])

    @functools.cached_property
    def _attracting(self) -> Mapping[podinfo.Likeness, Terms]:
        """The terms of affinity."""
        found = dict(self._read(pod_terms.required_affinity))
        return self._affordable(found, lambda terms: [terms])

    def _read(
        self, read: Callable[[podinfo.Pod], Terms]
    ) -> Iterator[tuple[podinfo.Likeness, Terms]]:
        """Yield the terms of the pods that are alike, each once, where they have any."""
        for key, pods in self._seen.alike.items():
            first = pods[0]
            if first.affinity and (terms := read(first)):
                yield key, tuple(dict.fromkeys(terms))

    def _affordable(
        self,
        terms_of: Mapping[podinfo.Likeness, Terms],
        compared: Callable[[Terms], Iterable[Terms]],
    ) -> Mapping[podinfo.Likeness, Terms]:
        """Return the terms of each group; none of a namespace where they are too many to compare.

        Pods share terms. Where each has one of its own, the effort is their number times that of
        the pods that they may select.
        """
        left = {
            name: max(_MOST_LOOKS, _MOST_BY_POD * self._alike[name].size)
            for name in {name for name, _, _ in terms_of}
        }
        counted = set[tuple[str, Terms]]()
        for (name, _, _), found in terms_of.items():
            for terms in compared(found):
                if left[name] >= 0 and (name, terms) not in counted:
                    counted.add((name, terms))
                    left[name] -= len(terms) * self._looks(terms[0], left[name])
        return {key: terms for key, terms in terms_of.items() if terms and left[key[0]] >= 0}

    def _looks(self, term: pod_terms.Term, most: int) -> int:
        """Return with how much a term is compared, counted no further than where that is enough."""
        count = 0
        for name in self._named(term):
            count += 1
            if self._is_covered(term, name):
                count += self._alike[name].pods_compared(term.selector)
            if count > most:
                break
        return count

    def _named(self, term: pod_terms.Term) -> Iterable[str]:
        return term.namespaces if term.namespace_selector is None else self._alike

    def _is_covered(self, term: pod_terms.Term, name: str) -> bool:
        """Whether a term covers a namespace that has pods."""
        namespaces = self._seen.namespaces
        return name in self._alike and term.covers(name, namespaces.get(name, _NO_LABELS))
