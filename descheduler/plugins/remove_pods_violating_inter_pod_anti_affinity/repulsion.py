"""Which pods repel which, by domain of their topology."""

import collections
from collections.abc import Iterable, Mapping
from typing import Final

from descheduler.framework.pods import pod_terms
from descheduler.model import nodeinfo, picture, podinfo

_NO_LABELS: Final[Mapping[str, str]] = {}
_ByDomain = collections.defaultdict[str, set[str]]
"""Uids of pods by value of the topology label."""


class Repulsion:
    """Required anti-affinity between the pods that run; changes while pods move."""

    def __init__(self, seen: picture.Picture) -> None:
        self._seen = seen
        self._terms_of: dict[tuple[int, str, int], tuple[pod_terms.Term, ...]] = {}
        self._alike: dict[str, dict[int, list[podinfo.Pod]]] = {}
        self._repelling: dict[pod_terms.Term, _ByDomain] = {}
        for pod in (pod for name in seen.nodes for pod in seen.on_node.get(name, ())):
            if pod.is_active:
                self._count(pod, seen.nodes[pod.node])
        self._by_namespace, self._by_labels = _indexed(self._repelling)
        self._selecting: dict[tuple[str, int], tuple[pod_terms.Term, ...]] = {}
        self._selected: dict[pod_terms.Term, _ByDomain] = {}

    def _count(self, pod: podinfo.Pod, node: nodeinfo.Node) -> None:
        of_namespace = self._alike.setdefault(pod.namespace, {})
        of_namespace.setdefault(id(pod.labels), []).append(pod)
        for term in self._own(pod):
            by_domain = self._repelling.setdefault(term, collections.defaultdict(set))
            _add(by_domain, term, pod, node)

    def _own(self, pod: podinfo.Pod) -> tuple[pod_terms.Term, ...]:
        """Return the terms of a pod; pods of one template share what they are read from."""
        if not pod.affinity:
            return ()
        key = id(pod.affinity), pod.namespace, id(pod.labels)
        found = self._terms_of.get(key)
        if found is None:
            found = self._terms_of[key] = pod_terms.required_anti_affinity(pod)
        return found

    def repels(self, pod: podinfo.Pod, node: nodeinfo.Node) -> str:
        """Return the uid of a pod that keeps a pod away from a node, empty without one."""
        for term in self._terms_against(pod):
            others = self._repelling[term].get(node.labels.get(term.topology_key, ""), set())
            # Mostly a pod is alone in its domain, with terms against its own kind.
            if len(others) > 1 or (others and pod.uid not in others):
                return min(others - {pod.uid})
        return ""

    def forbidden(self, pod: podinfo.Pod) -> Mapping[str, set[str]]:
        """Return the domains that a pod may not be in, its own anti-affinity included, by label."""
        found: dict[str, set[str]] = {}
        pairs = [(term, self._repelling[term]) for term in self._terms_against(pod)]
        pairs += [(term, self._selected_by(term)) for term in self._own(pod)]
        for term, by_domain in pairs:
            domains = (name for name, others in by_domain.items() if others - {pod.uid})
            found.setdefault(term.topology_key, set()).update(domains)
        return found

    def move(self, pod: podinfo.Pod, target: nodeinfo.Node | None) -> None:
        """Count a pod on another node from here on; on none where that is not known."""
        source = self._seen.nodes[pod.node]
        own = set(self._own(pod))
        for kept, terms in (
            (self._repelling, own),
            (self._selected, {one for one in self._selected if self._selects(one, pod)}),
        ):
            for term in terms:
                kept[term][source.labels.get(term.topology_key, "")].discard(pod.uid)
                if target is not None:
                    _add(kept[term], term, pod, target)

    def _terms_against(self, pod: podinfo.Pod) -> tuple[pod_terms.Term, ...]:
        """Return the terms that select a pod; pods of one template share their labels."""
        key = pod.namespace, id(pod.labels)
        found = self._selecting.get(key)
        if found is None:
            meant = (*self._by_namespace.get(pod.namespace, ()), *self._by_labels)
            found = tuple(term for term in meant if self._selects(term, pod))
            self._selecting[key] = found
        return found

    def _selects(self, term: pod_terms.Term, pod: podinfo.Pod) -> bool:
        namespace = self._seen.namespaces.get(pod.namespace, _NO_LABELS)
        return term.covers(pod.namespace, namespace) and term.selector.matches(pod.labels)

    def _selected_by(self, term: pod_terms.Term) -> _ByDomain:
        """Return the pods that a term selects, by domain."""
        found = self._selected.get(term)
        if found is None:
            found = self._selected[term] = collections.defaultdict(set)
            named = term.namespaces if term.namespace_selector is None else self._alike
            for namespace in named:
                for alike in self._alike.get(namespace, {}).values():
                    for pod in alike if self._selects(term, alike[0]) else ():
                        _add(found, term, pod, self._seen.nodes[pod.node])
        return found


def _add(by_domain: _ByDomain, term: pod_terms.Term, pod: podinfo.Pod, node: nodeinfo.Node) -> None:
    domain = node.labels.get(term.topology_key)
    if domain:
        by_domain[domain].add(pod.uid)


def _indexed(
    terms: Iterable[pod_terms.Term],
) -> tuple[Mapping[str, list[pod_terms.Term]], list[pod_terms.Term]]:
    """Return terms by the namespaces they name, and those that select namespaces by labels."""
    named: dict[str, list[pod_terms.Term]] = {}
    by_labels = []
    for term in terms:
        if term.namespace_selector is not None:
            by_labels.append(term)
            continue
        for namespace in term.namespaces:
            named.setdefault(namespace, []).append(term)
    return named, by_labels
