"""Affinity terms of pods on nodes that may score another pod, as InterPodAffinity reads them."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.kubernetes import core
from domain.scoring import terms

_MOST: Final = 4096
_MOST_LABELS: Final = 64
"""Labels of a pod of which the answer is kept, longer than the pod may be there."""
_SOFT: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_HARD: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_Question = tuple[str, tuple[tuple[str, str], ...], bool]


@dataclasses.dataclass(frozen=True, slots=True)
class PodTerm:
    """One term of a pod that is on a node, as far as it may score other pods."""

    hard: bool
    """Required affinity, which scores while hardPodAffinityWeight is above 0."""
    selector: terms.Selector
    namespaces: frozenset[str]
    namespace_selector: terms.Selector | None
    """Namespaces by label besides; None is no others, one without requirements is all."""


def read(pod: core.Pod) -> tuple[PodTerm, ...]:
    """Return the terms of a pod; required anti-affinity filters and scores nothing."""
    written = pod.spec.affinity
    if not written:
        return ()
    with_others = written.get("podAffinity") or {}
    apart = written.get("podAntiAffinity") or {}
    soft = (*(with_others.get(_SOFT) or ()), *(apart.get(_SOFT) or ()))
    found = [(one, True) for one in with_others.get(_HARD) or ()]
    found += [(one.get("podAffinityTerm") or {}, False) for one in soft]
    return tuple(dict.fromkeys(_terms(pod.metadata.namespace, found)))


def _terms(namespace: str, found: list[tuple[Mapping[str, Any], bool]]) -> Iterator[PodTerm]:
    for written, hard in found:
        selector = terms.selector(written.get("labelSelector"))
        if selector is None:
            continue
        elsewhere = terms.selector(written.get("namespaceSelector"))
        named = frozenset(written.get("namespaces") or ())
        if not named and elsewhere is None:
            named = frozenset((namespace,))
        yield PodTerm(hard, selector, named, elsewhere)


class TermIndex:
    """Distinct terms of the pods that are placed or assumed, terminating ones included."""

    def __init__(self) -> None:
        self._pods: dict[PodTerm, int] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._answers: dict[_Question, bool] = {}

    def add(self, found: tuple[PodTerm, ...]) -> None:
        """Count the terms of a pod."""
        for term in found:
            number = self._pods.get(term, 0)
            self._pods[term] = number + 1
            if not number:
                self._answers.clear()

    def remove(self, found: tuple[PodTerm, ...]) -> None:
        """Count the terms of a pod no more."""
        for term in found:
            self._pods[term] -= 1
            if not self._pods[term]:
                del self._pods[term]
                self._answers.clear()

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Note the labels of a namespace."""
        if self._namespaces.get(name) != labels:
            self._namespaces[name] = labels
            self._answers.clear()

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace."""
        if self._namespaces.pop(name, None) is not None:
            self._answers.clear()

    def may_score(self, namespace: str, labels: Mapping[str, str], hard: bool) -> bool:
        """Tell whether some term selects a pod; with `hard` required affinity counts as well.

        The labels of a namespace that is not known satisfy every selector.
        """
        if not self._pods:
            return False
        if len(labels) > _MOST_LABELS:
            return self._may_score(namespace, labels, hard)
        question = (namespace, tuple(sorted(labels.items())), hard)
        answer = self._answers.get(question)
        if answer is None:
            if len(self._answers) >= _MOST:
                self._answers.clear()
            answer = self._answers[question] = self._may_score(namespace, labels, hard)
        return answer

    def _may_score(self, namespace: str, labels: Mapping[str, str], hard: bool) -> bool:
        return any(
            self._selects(term, namespace, labels) for term in self._pods if hard or not term.hard
        )

    def _selects(self, term: PodTerm, namespace: str, labels: Mapping[str, str]) -> bool:
        if namespace not in term.namespaces:
            elsewhere, known = term.namespace_selector, self._namespaces.get(namespace)
            if elsewhere is None or (known is not None and not elsewhere.matches(known)):
                return False
        return term.selector.matches(labels)
