"""Which pods are where the anti-affinity of another one forbids them, by domain of its topology."""

import collections
import itertools
from collections.abc import Collection, Mapping

from descheduler.framework.pods import pod_terms, term_index
from descheduler.model import nodeinfo, picture, podinfo

_ByDomain = collections.defaultdict[str, set[str]]
"""Uids of pods by value of the topology label."""


class Repulsion:
    """Required anti-affinity of the pods that stay; changes while pods move.

    Which pods of a term are in which domain is only listed for terms that are broken.
    """

    def __init__(self, seen: picture.Picture) -> None:
        self._seen = seen
        self._index = term_index.of(seen)
        self._repelling: dict[pod_terms.Term, _ByDomain] = {}
        self._moved: dict[str, nodeinfo.Node | None] = {}

    def repelled(self) -> Collection[podinfo.Pod]:
        """Return the pods that are where another one keeps them away, before the first move."""
        found: dict[str, podinfo.Pod] = {}
        index = self._index
        if not index.repels:
            return ()
        counts = {term: self._counts(term) for term in index.holders}
        for pods in self._seen.alike.values():
            own = index.repelling(pods[0])
            for term in index.against(pods[0]):
                in_domain = counts[term]
                # A pod with the term is counted itself, and repelled by others alone.
                itself = int(term in own)
                if max(in_domain.values(), default=0) <= itself:
                    continue
                of_node = index.domains(term.topology_key).of_node
                for pod in filter(_stays, pods):
                    if in_domain.get(of_node.get(pod.node, -1), 0) > itself:
                        found[pod.uid] = pod
        return found.values()

    def _counts(self, term: pod_terms.Term) -> Mapping[int, int]:
        """Return by domain how many pods have a term."""
        of_node = self._index.domains(term.topology_key).of_node
        held = itertools.chain.from_iterable(self._index.holders[term])
        found = collections.Counter(of_node.get(pod.node, -1) for pod in filter(_stays, held))
        del found[-1]
        return found

    def repels(self, pod: podinfo.Pod, node: nodeinfo.Node) -> str:
        """Return the uid of a pod that keeps a pod away from a node, empty without one."""
        for term in self._index.against(pod):
            others = self._repelling_by(term).get(node.labels.get(term.topology_key, ""))
            if others and (len(others) > 1 or pod.uid not in others):
                return min(others - {pod.uid})
        return ""

    def move(self, pod: podinfo.Pod, target: nodeinfo.Node | None) -> None:
        """Count a pod on another node from here on; on none where that is not known."""
        source = self._seen.nodes[pod.node]
        for term in self._index.repelling(pod):
            by_domain = self._repelling.get(term)
            if by_domain is not None:
                by_domain[source.labels.get(term.topology_key, "")].discard(pod.uid)
                _add(by_domain, term, pod, target)
        self._moved[pod.uid] = target

    def _repelling_by(self, term: pod_terms.Term) -> _ByDomain:
        """Return the pods that have a term, by domain, those that have moved where they are now."""
        found = self._repelling.get(term)
        if found is None:
            found = self._repelling[term] = collections.defaultdict(set)
            for pods in self._index.holders[term]:
                for pod in filter(_stays, pods):
                    is_moved = pod.uid in self._moved
                    node = self._moved[pod.uid] if is_moved else self._seen.nodes.get(pod.node)
                    _add(found, term, pod, node)
        return found


def _stays(pod: podinfo.Pod) -> bool:
    return pod.leaves_at < 0


def _add(
    by_domain: _ByDomain, term: pod_terms.Term, pod: podinfo.Pod, node: nodeinfo.Node | None
) -> None:
    domain = node.labels.get(term.topology_key) if node is not None else None
    if domain:
        by_domain[domain].add(pod.uid)
