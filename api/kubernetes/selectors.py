"""Matching of label selectors, node selector terms and tolerations."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from api.kubernetes import core

_INTEGER: Final = re.compile("[+-]?[0-9]{1,64}")
_NEED_LABEL: Final = ("In", "Exists")
_MOST_COMPARED: Final = 16
"""Requirements of a selector that are compared one after the other."""


class SelectorError(ValueError):
    """A selector that cannot be evaluated; names the operator."""


class _Requirement(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Sequence[str]: ...


class _LabelSelector(Protocol):
    @property
    def match_labels(self) -> Mapping[str, str]: ...
    @property
    def match_expressions(self) -> Sequence[_Requirement]: ...


def matches(selector: Mapping[str, Any] | _LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Tell whether labels satisfy a selector: none matches nothing, an empty one everything."""
    if selector is None:
        return False
    if type(selector) is _Indexed:
        return selector.matches(labels)
    if isinstance(selector, Mapping):
        pairs = selector.get("matchLabels") or {}
        requirements = [
            (item["key"], item["operator"], item.get("values") or ())
            for item in selector.get("matchExpressions") or ()
        ]
    else:
        pairs = selector.match_labels
        requirements = [(i.key, i.operator, i.values) for i in selector.match_expressions]
    # Loops, because this is asked of every profile for every pod.
    for key, value in pairs.items():
        if labels.get(key) != value:
            return False
    for key, operator, values in requirements:
        if not satisfied(labels.get(key), operator, values):
            return False
    return True


class _Indexed(dict[str, Any]):
    """A selector with many requirements, of which only those that labels concern are looked at."""

    def __init__(self, written: Mapping[str, Any], merged: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(written)
        self._by_key: dict[str, list[Mapping[str, Any]]] = {}
        for one in merged:
            self._by_key.setdefault(one["key"], []).append(one)
        self._needed = frozenset(one["key"] for one in merged if one["operator"] in _NEED_LABEL)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels satisfy the selector."""
        if len(self._needed) > len(labels) or not all(key in labels for key in self._needed):
            return False
        pairs = self.get("matchLabels") or {}
        return all(labels.get(key) == value for key, value in pairs.items()) and all(
            satisfied(labels.get(key), one["operator"], one["values"])
            for key in min(labels, self._by_key, key=len)
            for one in self._by_key.get(key, ())
        )


def prepared(selector: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a selector that matches the same in time that does not follow how long it is.

    The API server bounds requirements and their values by the size of the object alone, and many
    pods are compared with one selector. What does not have the shape of one is returned as it is.
    """
    written = selector.get("matchExpressions") if selector else None
    if selector is None or not isinstance(written, list) or not all(map(_is_plain, written)):
        return selector
    merged = _merged(written)
    found = {**selector, "matchExpressions": merged}
    return found if len(merged) <= _MOST_COMPARED else _Indexed(found, merged)


def _merged(written: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return requirements with their values as sets, of each key and operator one."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    excluded: dict[str, set[str]] = {}
    for one in written:
        key, operator, values = one["key"], one["operator"], one.get("values") or ()
        if operator == "NotIn":
            excluded.setdefault(key, set()).update(values)
        kept = found.setdefault((key, operator), frozenset(values))
        if operator == "In":
            found[key, operator] = kept.intersection(values)
    for key, values in excluded.items():
        found[key, "NotIn"] = frozenset(values)
    return [
        {"key": key, "operator": operator, "values": values}
        for (key, operator), values in found.items()
    ]


def _is_plain(expression: object) -> bool:
    if not isinstance(expression, dict) or not isinstance(expression.get("key"), str):
        return False
    if expression.get("operator") not in (*_NEED_LABEL, "NotIn", "DoesNotExist"):
        return False
    values = expression.get("values") or []
    return isinstance(values, list) and all(isinstance(one, str) for one in values)


def satisfied(value: str | None, operator: str, wanted: Sequence[str]) -> bool:
    """Tell whether one label value satisfies one requirement."""
    match operator:
        case "In":
            return value is not None and value in wanted
        case "NotIn":
            return value is None or value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compared(value, operator, wanted)
    raise SelectorError(
        f'operator: "{operator}" is unknown; use In, NotIn, Exists, DoesNotExist, Gt or Lt'
    )


def _compared(value: str | None, operator: str, wanted: Sequence[str]) -> bool:
    if value is None or len(wanted) != 1:
        return False
    left, right = _integer(value), _integer(wanted[0])
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def _integer(text: str) -> int | None:
    """Read a whole number of 64 bits as Go does: digits of ASCII alone, with or without a sign."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def matches_term(
    term: Mapping[str, Any], labels: Mapping[str, str], fields: Mapping[str, str] | None = None
) -> bool:
    """Tell whether labels and fields satisfy one node selector term; an empty term matches none."""
    expressions = term.get("matchExpressions") or ()
    field_expressions = term.get("matchFields") or ()
    if not expressions and not field_expressions:
        return False
    return all(
        satisfied(source.get(item["key"]), item["operator"], item.get("values") or ())
        for source, items in ((labels, expressions), (fields or {}, field_expressions))
        for item in items
    )


def matches_any_term(
    terms: Iterable[Mapping[str, Any]],
    labels: Mapping[str, str],
    fields: Mapping[str, str] | None = None,
) -> bool:
    """Tell whether at least one node selector term is satisfied."""
    return any(matches_term(term, labels, fields) for term in terms)


def matches_node(spec: core.PodSpec, node: core.Node) -> bool:
    """Tell whether a node satisfies the node selector and required node affinity of a pod."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = (spec.affinity or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    terms = required.get("nodeSelectorTerms") or ()
    return matches_any_term(terms, labels, {"metadata.name": node.metadata.name})


def tolerates(toleration: core.Toleration, taint: core.Taint) -> bool:
    """Tell whether one toleration covers one taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def tolerated(
    taints: Iterable[core.Taint],
    tolerations: Sequence[core.Toleration],
    effects: frozenset[str] = frozenset({"NoSchedule", "NoExecute"}),
) -> bool:
    """Tell whether every taint with one of these effects is covered by some toleration."""
    return all(
        any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in effects
    )
