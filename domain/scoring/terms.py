"""Label selectors and node affinity terms as hashable values, so that what they match is cached."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final

from api.kubernetes import selectors

Labels = Mapping[str, str]
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclasses.dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on a label or a field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Tell whether labels satisfy the requirement; none do where its operator is not known."""
        try:
            return selectors.satisfied(labels.get(self.key), self.operator, self.values)
        except selectors.SelectorError:
            return False


@dataclasses.dataclass(frozen=True, slots=True)
class Selector:
    """A label selector: every requirement has to be satisfied; none are satisfied by all labels."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Tell whether labels satisfy every requirement."""
        return all(one.matches(labels) for one in self.requirements)


def selector(label_selector: Mapping[str, Any] | None) -> Selector | None:
    """Read a LabelSelector; None selects nothing."""
    if label_selector is None:
        return None
    pairs = label_selector.get("matchLabels") or {}
    return Selector(
        equalities(pairs) + tuple(map(_requirement, label_selector.get("matchExpressions") or ()))
    )


def equalities(pairs: Mapping[str, str]) -> tuple[Requirement, ...]:
    """Return the requirements that labels have exactly these values."""
    return tuple(Requirement(key, "In", (value,)) for key, value in sorted(pairs.items()))


@dataclasses.dataclass(frozen=True, slots=True)
class NodeTerm:
    """A node selector term; without requirements it matches no node."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the term has no requirement."""
        return not (self.labels or self.fields)

    def matches(self, name: str, labels: Labels) -> bool:
        """Tell whether a node of this name and these labels satisfies the term."""
        if self.empty:
            return False
        fields = {"metadata.name": name}
        return all(one.matches(labels) for one in self.labels) and all(
            one.matches(fields) for one in self.fields
        )


def node_term(term: Mapping[str, Any]) -> NodeTerm:
    """Read a node selector term."""
    return NodeTerm(
        tuple(map(_requirement, term.get("matchExpressions") or ())),
        tuple(map(_requirement, term.get("matchFields") or ())),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class NodeRequirements:
    """The node selector and required node affinity of a pod; terms are None where it has none."""

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[NodeTerm, ...] | None = None

    def matches(self, name: str, labels: Labels) -> bool:
        """Tell whether a node satisfies both."""
        if any(labels.get(key) != value for key, value in self.selector):
            return False
        return self.terms is None or any(term.matches(name, labels) for term in self.terms)


def node_requirements(
    node_selector: Mapping[str, str], node_affinity: Mapping[str, Any]
) -> NodeRequirements | None:
    """Read what a pod requires of nodes; None is nothing."""
    required = node_affinity.get(_REQUIRED)
    if not node_selector and required is None:
        return None
    terms = None
    if required is not None:
        terms = tuple(map(node_term, required.get("nodeSelectorTerms") or ()))
    return NodeRequirements(tuple(sorted(node_selector.items())), terms)


def exceeds(of_nodes: Mapping[str, Any], most: int, most_values: int) -> bool:
    """Tell whether node affinity has more terms, requirements or values than that.

    The API server bounds none of them, and they may be compared with every node.
    """
    found = [one.get("preference") or {} for one in of_nodes.get(_PREFERRED) or ()]
    found += (of_nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    if len(found) > most:
        return True
    listed = [one for term in found for one in written_requirements(term)]
    return len(listed) > most or sum(len(one.get("values") or ()) for one in listed) > most_values


def written_requirements(term: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return all requirements of a node selector term as they are written."""
    return [*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())]


Preferences = tuple[tuple[NodeTerm, int], ...]
"""Terms and their weights."""


def preferences(node_affinity: Mapping[str, Any]) -> Preferences:
    """Read preferred node affinity terms; those without weight or requirement score nothing."""
    written: Iterable[Mapping[str, Any]] = node_affinity.get(_PREFERRED) or ()
    pairs = ((node_term(one.get("preference") or {}), int(one.get("weight", 0))) for one in written)
    return tuple((term, weight) for term, weight in pairs if weight and not term.empty)


def _requirement(written: Mapping[str, Any]) -> Requirement:
    return Requirement(
        str(written.get("key", "")),
        str(written.get("operator", "")),
        tuple(map(str, written.get("values") or ())),
    )
