"""Things found by the pods that their terms select. Pure."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Final, Generic, TypeVar

from descheduler.framework.pods import pod_terms, pods_alike
from descheduler.model import podinfo

T = TypeVar("T")
Terms = tuple[pod_terms.Term, ...]
"""Where there are several, all of them have to select a pod."""
Namespaces = Mapping[str, Mapping[str, str]]
"""Labels by name."""
_NO_LABELS: Final[Mapping[str, str]] = {}


def selects(terms: Terms, pod: podinfo.Pod, namespaces: Namespaces) -> bool:
    """Whether every one of some terms selects a pod."""
    if not terms:
        return True
    namespace = pod.namespace
    of_namespace = namespaces.get(namespace, _NO_LABELS)
    return all(
        term.covers(namespace, of_namespace) and term.selector.matches(pod.labels) for term in terms
    )


class BySelection(Generic[T]):
    """Things with terms each; a pod is compared with few of them."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._named: dict[str, pods_alike.BySelector[tuple[Terms, T]]] = {}
        self._by_labels = pods_alike.BySelector[tuple[Terms, T]]()
        """Of terms that select namespaces by labels."""

    def add(self, terms: Terms, thing: T) -> None:
        """Take in one with at least one term."""
        first = terms[0]
        if first.namespace_selector is not None:
            self._by_labels.add(first.selector, (terms, thing))
            return
        for namespace in first.namespaces:
            known = self._named.setdefault(namespace, pods_alike.BySelector())
            known.add(first.selector, (terms, thing))

    def of(self, pod: podinfo.Pod) -> Iterator[T]:
        """Yield those whose terms select a pod."""
        found = self._by_labels.candidates(pod.labels)
        named = self._named.get(pod.namespace)
        if named is not None:
            found = itertools.chain(named.candidates(pod.labels), found)
        for terms, thing in found:
            if selects(terms, pod, self._namespaces):
                yield thing
