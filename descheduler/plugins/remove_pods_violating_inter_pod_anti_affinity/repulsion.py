"""Which pods repel which, by domain of their topology."""

import collections
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from descheduler.framework.pods import pod_terms, pods_alike
from descheduler.model import nodeinfo, picture, podinfo

_MOST_LOOKS: Final = 1 << 19
"""Looks at namespaces and pods for the terms of the pods of one namespace."""
_MOST_BY_POD: Final = 64
"""The same for each of its pods, where there are many."""
_NO_LABELS: Final[Mapping[str, str]] = {}
_Terms = pods_alike.BySelector[pod_terms.Term]
_NO_TERMS: Final = _Terms()
_ByDomain = collections.defaultdict[str, set[str]]
"""Uids of pods by value of the topology label."""
_Group = Sequence[podinfo.Pod]
"""Pods of one template, which share what their terms are read from, and their labels."""
_Key = tuple[str, int, int]
"""What the pods of a group share: namespace, labels and affinity."""


class Repulsion:
    """Required anti-affinity between the pods that run; changes while pods move.

    All questions are asked once for a group of pods, and which pods of a term are in which domain
    is only listed for terms that are broken.
    """

    def __init__(self, seen: picture.Picture) -> None:
        self._seen = seen
        self._groups = _grouped(seen)
        self._alike: dict[str, pods_alike.Alike] = {}
        for key, pods in self._groups.items():
            self._alike.setdefault(key[0], pods_alike.Alike()).extend(pods)
        self._terms_of = self._terms()
        self._holders: dict[pod_terms.Term, list[_Group]] = {}
        for key, pods in self._groups.items():
            for term in self._terms_of[key]:
                self._holders.setdefault(term, []).append(pods)
        self._by_namespace, self._by_labels = _indexed(self._holders)
        self._against: dict[tuple[str, int], tuple[pod_terms.Term, ...]] = {}
        self._domains: dict[str, Mapping[str, str]] = {}
        self._repelling: dict[pod_terms.Term, _ByDomain] = {}
        self._selected: dict[pod_terms.Term, _ByDomain] = {}
        self._moved: dict[str, nodeinfo.Node | None] = {}

    def _terms(self) -> Mapping[_Key, tuple[pod_terms.Term, ...]]:
        """Return the terms of each group; none of a namespace where they are too many to compare.

        Pods share terms. Where each has one of its own, the effort is their number times that of
        the pods that they may select, so they repel nothing here.
        """
        found = {key: _own_terms(pods[0]) for key, pods in self._groups.items()}
        left = {
            name: max(_MOST_LOOKS, _MOST_BY_POD * alike.size) for name, alike in self._alike.items()
        }
        counted = set[tuple[str, pod_terms.Term]]()
        for (name, _, _), terms in found.items():
            for term in terms:
                if left[name] >= 0 and (name, term) not in counted:
                    counted.add((name, term))
                    left[name] -= self._looks(term, left[name])
        return {key: terms if left[key[0]] >= 0 else () for key, terms in found.items()}

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

    def repelled(self) -> Collection[podinfo.Pod]:
        """Return the pods that are where another one keeps them away, before the first move."""
        found: dict[str, podinfo.Pod] = {}
        counts = {term: self._counts(term) for term in self._holders}
        for key, pods in self._groups.items():
            own = self._terms_of[key]
            for term in self._terms_against(pods[0]):
                in_domain = counts[term]
                # A pod with the term is counted itself, and repelled by others alone.
                itself = int(term in own)
                if max(in_domain.values(), default=0) <= itself:
                    continue
                of_node = self._domains_of(term)
                for pod in pods:
                    if in_domain.get(of_node.get(pod.node, ""), 0) > itself:
                        found[pod.uid] = pod
        return found.values()

    def _counts(self, term: pod_terms.Term) -> Mapping[str, int]:
        """Return by domain how many pods have a term."""
        of_node = self._domains_of(term)
        held = [of_node.get(pod.node, "") for pods in self._holders[term] for pod in pods]
        found = collections.Counter(held)
        del found[""]
        return found

    def _domains_of(self, term: pod_terms.Term) -> Mapping[str, str]:
        """Return the domains of a term by node, of the nodes that are in any."""
        topology = term.topology_key
        found = self._domains.get(topology)
        if found is None:
            labelled = ((name, node.labels) for name, node in self._seen.nodes.items())
            found = self._domains[topology] = {
                name: domain for name, labels in labelled if (domain := labels.get(topology))
            }
        return found

    def repels(self, pod: podinfo.Pod, node: nodeinfo.Node) -> str:
        """Return the uid of a pod that keeps a pod away from a node, empty without one."""
        for term in self._terms_against(pod):
            others = self._repelling_by(term).get(node.labels.get(term.topology_key, ""))
            if others and (len(others) > 1 or pod.uid not in others):
                return min(others - {pod.uid})
        return ""

    def forbidden(self, pod: podinfo.Pod) -> Mapping[str, set[str]]:
        """Return the domains that a pod may not be in, its own anti-affinity included, by label."""
        found: dict[str, set[str]] = {}
        against = ((term, self._repelling_by(term)) for term in self._terms_against(pod))
        selected = ((term, self._selected_by(term)) for term in self._terms_of[_key(pod)])
        for term, by_domain in itertools.chain(against, selected):
            domains = (name for name, others in by_domain.items() if others - {pod.uid})
            found.setdefault(term.topology_key, set()).update(domains)
        return found

    def move(self, pod: podinfo.Pod, target: nodeinfo.Node | None) -> None:
        """Count a pod on another node from here on; on none where that is not known."""
        source = self._seen.nodes[pod.node]
        own = self._terms_of[_key(pod)]
        for term, by_domain in itertools.chain(
            ((one, self._repelling[one]) for one in own if one in self._repelling),
            ((one, there) for one, there in self._selected.items() if self._selects(one, pod)),
        ):
            by_domain[source.labels.get(term.topology_key, "")].discard(pod.uid)
            _add(by_domain, term, pod, target)
        self._moved[pod.uid] = target

    def _terms_against(self, pod: podinfo.Pod) -> tuple[pod_terms.Term, ...]:
        """Return the terms that select a pod; pods of one template share their labels."""
        key = pod.namespace, id(pod.labels)
        found = self._against.get(key)
        if found is None:
            named = self._by_namespace.get(pod.namespace, _NO_TERMS)
            meant = (*named.candidates(pod.labels), *self._by_labels.candidates(pod.labels))
            found = self._against[key] = tuple(one for one in meant if self._selects(one, pod))
        return found

    def _selects(self, term: pod_terms.Term, pod: podinfo.Pod) -> bool:
        namespace = self._seen.namespaces.get(pod.namespace, _NO_LABELS)
        return term.covers(pod.namespace, namespace) and term.selector.matches(pod.labels)

    def _repelling_by(self, term: pod_terms.Term) -> _ByDomain:
        """Return the pods that have a term, by domain."""
        found = self._repelling.get(term)
        if found is None:
            held = itertools.chain.from_iterable(self._holders[term])
            found = self._repelling[term] = self._placed(term, held)
        return found

    def _selected_by(self, term: pod_terms.Term) -> _ByDomain:
        """Return the pods that a term selects, by domain."""
        found = self._selected.get(term)
        if found is None:
            covered = (self._alike[n] for n in self._named(term) if self._is_covered(term, n))
            selected = (pod for alike in covered for pod in alike.selected(term.selector))
            found = self._selected[term] = self._placed(term, selected)
        return found

    def _placed(self, term: pod_terms.Term, pods: Iterable[podinfo.Pod]) -> _ByDomain:
        """Return pods by domain, those that have moved where they are now."""
        found: _ByDomain = collections.defaultdict(set)
        for pod in pods:
            node = self._moved[pod.uid] if pod.uid in self._moved else self._seen.nodes[pod.node]
            _add(found, term, pod, node)
        return found


def _grouped(seen: picture.Picture) -> Mapping[_Key, list[podinfo.Pod]]:
    found: dict[_Key, list[podinfo.Pod]] = collections.defaultdict(list)
    for name in seen.nodes:
        for pod in seen.on_node.get(name, ()):
            # Asked of every pod of the cluster, so without the properties that say the same.
            if pod.leaves_at < 0 and pod.phase not in podinfo.ENDED:
                found[pod.key.partition("/")[0], id(pod.labels), id(pod.affinity)].append(pod)
    return found


def _key(pod: podinfo.Pod) -> _Key:
    return pod.namespace, id(pod.labels), id(pod.affinity)


def _own_terms(pod: podinfo.Pod) -> tuple[pod_terms.Term, ...]:
    return tuple(dict.fromkeys(pod_terms.required_anti_affinity(pod)))


def _add(
    by_domain: _ByDomain, term: pod_terms.Term, pod: podinfo.Pod, node: nodeinfo.Node | None
) -> None:
    domain = node.labels.get(term.topology_key) if node is not None else None
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
