"""Terms of affinity and anti-affinity to pods, as values that can be compared and kept. Pure.

What tenants write is read with care: terms that cannot be read count as missing.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final

from descheduler.model import podinfo
from domain.scoring import terms

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
MOST: Final = 64
"""Terms, or spread constraints, of one pod: more than that count as unreadable, since each may be
compared with every pod of the cluster, and the API server bounds neither."""
UNREADABLE: Final = (ValueError, TypeError, AttributeError, LookupError)


@dataclasses.dataclass(frozen=True, slots=True)
class Term:
    """Which pods must be, or must not be, in the same domain."""

    selector: terms.Selector
    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: terms.Selector | None
    """Namespaces by their labels, beside those that are named."""

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a namespace with these labels is meant."""
        if namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and self.namespace_selector.matches(labels)


def required_anti_affinity(pod: podinfo.Pod) -> tuple[Term, ...]:
    """Return the terms of required anti-affinity to pods; none where they cannot be read."""
    return _required(pod, "podAntiAffinity")


def required_affinity(pod: podinfo.Pod) -> tuple[Term, ...]:
    """Return the terms of required affinity to pods; none where they cannot be read."""
    return _required(pod, "podAffinity")


def _required(pod: podinfo.Pod, kind: str) -> tuple[Term, ...]:
    if not pod.affinity:
        return ()
    try:
        found: Any = pod.affinity.get(kind) or {}
        written = found.get(_REQUIRED) or ()
        return tuple(_term(one, pod) for one in written) if len(written) <= MOST else ()
    except UNREADABLE:
        return ()


def _term(written: Mapping[str, Any], pod: podinfo.Pod) -> Term:
    by_labels = written.get("namespaceSelector")
    named = frozenset(map(str, written.get("namespaces") or ()))
    if not named and by_labels is None:
        named = frozenset({pod.namespace})
    selector = selector_with(written, pod.labels)
    return Term(
        selector if selector is not None else NOTHING,
        str(written["topologyKey"]),
        named,
        _checked(terms.selector(by_labels)),
    )


NOTHING: Final = terms.Selector(
    (
        terms.Requirement("kubernetes.io/none", "Exists"),
        terms.Requirement("kubernetes.io/none", "DoesNotExist"),
    )
)
"""Selects no pod, as a missing label selector does."""


def selector_with(written: Mapping[str, Any], labels: Mapping[str, str]) -> terms.Selector | None:
    """Read a label selector with what `matchLabelKeys` and `mismatchLabelKeys` add to it."""
    selector = _checked(terms.selector(written.get("labelSelector")))
    if selector is None:
        return None
    same = _own("In", written.get("matchLabelKeys") or (), labels)
    other = _own("NotIn", written.get("mismatchLabelKeys") or (), labels)
    return terms.Selector(selector.requirements + same + other)


def _own(
    operator: str, keys: Iterable[str], labels: Mapping[str, str]
) -> tuple[terms.Requirement, ...]:
    return tuple(terms.Requirement(key, operator, (labels[key],)) for key in keys if key in labels)


def _checked(selector: terms.Selector | None) -> terms.Selector | None:
    if selector is not None and any(
        one.operator not in _OPERATORS for one in selector.requirements
    ):
        raise ValueError("a label selector has an operator that there is not")
    return selector
