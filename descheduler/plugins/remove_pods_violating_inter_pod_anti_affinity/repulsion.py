"""Which pods repel which, by domain of their topology."""

import collections
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from descheduler.framework.pods import pod_terms, pods_alike
from descheduler.model import nodeinfo, picture, podinfo

_NO_LABELS: Final[Mapping[str, str]] = {}
_Terms = pods_alike.BySelector[pod_terms.Term]
_NO_TERMS: Final = _Terms()
_ByDomain = collections.defaultdict[str, set[str]]
"""Uids of pods by value of the topology label."""
_Counted = tuple[pod_terms.Term, _ByDomain]
"""A term, and the pods that have it."""
_Key = tuple[str, int, int]
"""What the pods of a group share: namespace, labels and affinity."""


class Repulsion:
    """Required anti-affinity between the pods that run; changes while pods move.

    Pods of one template share what their terms are read from, and their labels: all questions are
    asked once for such a group.
    """

    def __init__(self, seen: picture.Picture) -> None:
        self._seen = seen
        self._groups = _grouped(seen)
        self._alike: dict[str, pods_alike.Alike] = {}
        self._terms_of: dict[_Key, tuple[_Counted, ...]] = {}
        self._repelling: dict[pod_terms.Term, _ByDomain] = {}
        for key, pods in self._groups.items():
            self._count(key, pods)
        self._by_namespace, self._by_labels = _indexed(self._repelling)
        self._selecting: dict[tuple[str, int], tuple[_Counted, ...]] = {}
        self._selected: dict[pod_terms.Term, _ByDomain] = {}

    def _count(self, key: _Key, pods: Sequence[podinfo.Pod]) -> None:
        namespace = key[0]
        alike = self._alike.get(namespace)
        if alike is None:
            alike = self._alike[namespace] = pods_alike.Alike()
        alike.extend(pods)
        nodes = self._seen.nodes
        for term, by_domain in self._own(pods[0]):
            topology = term.topology_key
            for pod in pods:
                if domain := nodes[pod.node].labels.get(topology):
                    by_domain[domain].add(pod.uid)

    def _own(self, pod: podinfo.Pod) -> tuple[_Counted, ...]:
        """Return the terms of a pod, each with the pods that have it."""
        if not pod.affinity:
            return ()
        key = _key(pod)
        found = self._terms_of.get(key)
        if found is None:
            found = tuple(
                (term, self._repelling.setdefault(term, collections.defaultdict(set)))
                for term in pod_terms.required_anti_affinity(pod)
            )
            self._terms_of[key] = found
        return found

    def repelled(self) -> Collection[str]:
        """Return the uids of the pods that are where another one keeps them away."""
        found: set[str] = set()
        nodes = self._seen.nodes
        for pods in self._groups.values():
            for term, by_domain in self._terms_against(pods[0]):
                topology = term.topology_key
                for pod in pods:
                    others = by_domain.get(nodes[pod.node].labels.get(topology, ""))
                    if others and (len(others) > 1 or pod.uid not in others):
                        found.add(pod.uid)
        return found

    def repels(self, pod: podinfo.Pod, node: nodeinfo.Node) -> str:
        """Return the uid of a pod that keeps a pod away from a node, empty without one."""
        return _repels(self._terms_against(pod), pod, node)

    def forbidden(self, pod: podinfo.Pod) -> Mapping[str, set[str]]:
        """Return the domains that a pod may not be in, its own anti-affinity included, by label."""
        found: dict[str, set[str]] = {}
        selected = ((term, self._selected_by(term)) for term, _ in self._own(pod))
        pairs = itertools.chain(self._terms_against(pod), selected)
        for term, by_domain in pairs:
            domains = (name for name, others in by_domain.items() if others - {pod.uid})
            found.setdefault(term.topology_key, set()).update(domains)
        return found

    def move(self, pod: podinfo.Pod, target: nodeinfo.Node | None) -> None:
        """Count a pod on another node from here on; on none where that is not known."""
        source = self._seen.nodes[pod.node]
        own = {term for term, _ in self._own(pod)}
        for kept, terms in (
            (self._repelling, own),
            (self._selected, {one for one in self._selected if self._selects(one, pod)}),
        ):
            for term in terms:
                kept[term][source.labels.get(term.topology_key, "")].discard(pod.uid)
                if target is not None:
                    _add(kept[term], term, pod, target)

    def _terms_against(self, pod: podinfo.Pod) -> tuple[_Counted, ...]:
        """Return the terms that select a pod; pods of one template share their labels."""
        key = pod.namespace, id(pod.labels)
        found = self._selecting.get(key)
        if found is None:
            named = self._by_namespace.get(pod.namespace, _NO_TERMS)
            meant = (*named.candidates(pod.labels), *self._by_labels.candidates(pod.labels))
            # Values that are equal are compared at length, so each is looked up once.
            found = tuple(
                (term, self._repelling[term]) for term in meant if self._selects(term, pod)
            )
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
                labels = self._seen.namespaces.get(namespace, _NO_LABELS)
                alike = self._alike.get(namespace)
                if alike is not None and term.covers(namespace, labels):
                    for pod in alike.selected(term.selector):
                        _add(found, term, pod, self._seen.nodes[pod.node])
        return found


def _grouped(seen: picture.Picture) -> Mapping[_Key, list[podinfo.Pod]]:
    found: dict[_Key, list[podinfo.Pod]] = {}
    for name in seen.nodes:
        for pod in seen.on_node.get(name, ()):
            # Asked of every pod of the cluster, so without the properties that say the same.
            if pod.leaves_at < 0 and pod.phase not in podinfo.ENDED:
                key = pod.key.partition("/")[0], id(pod.labels), id(pod.affinity)
                group = found.get(key)
                if group is None:
                    found[key] = [pod]
                else:
                    group.append(pod)
    return found


def _key(pod: podinfo.Pod) -> _Key:
    return pod.namespace, id(pod.labels), id(pod.affinity)


def _repels(against: Sequence[_Counted], pod: podinfo.Pod, node: nodeinfo.Node) -> str:
    labels = node.labels
    for term, by_domain in against:
        others = by_domain.get(labels.get(term.topology_key, ""))
        # Mostly a pod is alone in its domain, with terms against its own kind.
        if others and (len(others) > 1 or pod.uid not in others):
            return min(others - {pod.uid})
    return ""


def _add(by_domain: _ByDomain, term: pod_terms.Term, pod: podinfo.Pod, node: nodeinfo.Node) -> None:
    domain = node.labels.get(term.topology_key)
    if domain:
        by_domain[domain].add(pod.uid)


def _indexed(
    terms: Iterable[pod_terms.Term],
) -> tuple[Mapping[str, _Terms], _Terms]:
    """Return terms by the namespaces they name, and those that select namespaces by labels."""
    named: dict[str, _Terms] = {}
    by_labels = _Terms()
    for term in terms:
        if term.namespace_selector is not None:
            by_labels.add(term.selector, term)
            continue
        for namespace in term.namespaces:
            named.setdefault(namespace, _Terms()).add(term.selector, term)
    return named, by_labels
