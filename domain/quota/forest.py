"""The forest of ElasticQuota trees as one immutable value: who uses, asks for and may have what.

Every change gives a new forest; equal histories in any order give equal forests, and the inverse of
a change leads back to an equal one. Pods are summed by quota label and namespace, so that a quota
that comes, goes or moves takes its pods along at once. Pure.
"""

from collections.abc import Mapping, Sequence

from api import names
from api.koordinator import quota as api
from domain.quota import checks, evaluation, membership, model, sums

Amounts = model.Amounts
EMPTY = model.EMPTY


class Forest:
    """All quotas, the nodes that they share out and the pods that count in them."""

    __slots__ = ("_evaluated", "_groups", "_members", "_quotas", "_rules", "_total", "_weights")

    def __init__(
        self,
        rules: model.Rules,
        quotas: Mapping[str, api.Quota] = EMPTY,  # type: ignore[assignment]
        total: Amounts = EMPTY,
        groups: Mapping[sums.Group, sums.Sums] = EMPTY,  # type: ignore[assignment]
        weights: Mapping[str, Amounts] = EMPTY,  # type: ignore[assignment]
    ) -> None:
        self._rules = rules
        self._quotas = quotas
        self._total = total
        self._groups = groups
        self._weights = weights
        self._members: membership.Membership | None = None
        self._evaluated: evaluation.Evaluation | None = None

    @classmethod
    def empty(cls, rules: model.Rules | None = None) -> "Forest":
        """Return a forest without quotas, nodes and pods."""
        return cls(rules or model.Rules())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Forest):
            return NotImplemented
        return self._value() == other._value()

    __hash__ = None  # type: ignore[assignment]

    def _value(self) -> tuple[object, ...]:
        return self._rules, self._quotas, self._total, self._groups, self._weights

    @property
    def rules(self) -> model.Rules:
        """Return the rules in force."""
        return self._rules

    # --- Changes -------------------------------------------------------------------------------

    def with_rules(self, rules: model.Rules) -> "Forest":
        """Return the forest under other rules."""
        return Forest(rules, self._quotas, self._total, self._groups, self._weights)

    def with_weights(self, weights: Mapping[str, Amounts]) -> "Forest":
        """Return the forest with these weights in place of those that quotas state, by quota."""
        return Forest(self._rules, self._quotas, self._total, self._groups, weights)

    def with_quota(self, before: api.Quota | None, after: api.Quota | None) -> "Forest":
        """Return the forest after an ElasticQuota came, changed or went."""
        quotas = dict(self._quotas)
        if before is not None:
            quotas.pop(before.identity, None)
        if after is not None:
            quotas[after.identity] = after
        return Forest(self._rules, quotas, self._total, self._groups, self._weights)

    def with_node(self, before: model.Pairs | None, after: model.Pairs | None) -> "Forest":
        """Return the forest after the allocatable resources of a node came, changed or went."""
        total = dict(self._total)
        for pairs, sign in ((before or (), -1), (after or (), 1)):
            for name, amount in pairs:
                total[name] = total.get(name, 0) + sign * amount
        kept = {name: amount for name, amount in total.items() if amount}
        return Forest(self._rules, self._quotas, kept, self._groups, self._weights)

    def with_pod(self, before: model.PodUse | None, after: model.PodUse | None) -> "Forest":
        """Return the forest after a pod came, changed (also its quota) or went."""
        groups = dict(self._groups)
        for pod, sign in ((before, -1), (after, 1)):
            if pod is not None:
                sums.count(groups, pod, sign)
        return Forest(self._rules, self._quotas, self._total, groups, self._weights)

    # --- Structure -----------------------------------------------------------------------------

    @property
    def _membership(self) -> membership.Membership:
        if self._members is None:
            self._members = membership.membership(
                self._quotas.values(), multi_tree=self._rules.multi_tree
            )
        return self._members

    def name_of(self, label: str, namespace: str) -> str:
        """Return the quota of pods by their label and namespace; empty where none counts them."""
        return self._membership.name_of(label, namespace, default=self._rules.default_quota)

    def quota(self, name: str) -> api.Quota | None:
        """Return the object of a quota, None where there is none."""
        members = self._membership
        place = members.places.get(name)
        return place.quota if place is not None else members.reserved.get(name)

    def names(self) -> Sequence[str]:
        """Return the quotas in their trees, parents before children."""
        return tuple(self._membership.places)

    def children(self, name: str) -> Sequence[str]:
        """Return the children of a quota in order; those of the root quota at the top of trees."""
        members = self._membership
        if name != names.ROOT_QUOTA:
            return members.children.get(name, ())
        return tuple(one for one, place in members.places.items() if not place.parent)

    def path(self, name: str) -> Sequence[str]:
        """Return a quota and its ancestors, without the root quota; empty where it is unknown."""
        return membership.path(self._membership, name)

    def tree(self, name: str) -> str:
        """Return the tree of a quota; empty for the default tree."""
        place = self._membership.places.get(name)
        return place.tree if place is not None else ""

    def conflicts(self) -> Sequence[str]:
        """Return what is wrong with quotas as sentences for their authors, boundedly many."""
        return self._membership.conflicts

    # --- Figures -------------------------------------------------------------------------------

    @property
    def _evaluation(self) -> evaluation.Evaluation:
        if self._evaluated is None:
            self._evaluated = evaluation.Evaluation(
                self._rules, self._membership, self._total, self._groups, self._weights
            )
        return self._evaluated

    def total(self, tree: str = "") -> Amounts:
        """Return what a tree shares out at its top; of the default tree it may be negative."""
        return self._evaluation.total(tree)

    def figures(self, name: str) -> model.Figures | None:
        """Return all figures of a quota, None where it is unknown."""
        return self._evaluation.figures(name)

    def derivation(self, name: str) -> Sequence[model.Step]:
        """Return how the runtime of a quota comes about, from the top of its tree downward."""
        return self._evaluation.derivation(name)

    def limit(self, name: str) -> Amounts:
        """Return what the pods of a quota may use now, by resource; what is absent is unlimited."""
        found = self.figures(name)
        return found.limit if found is not None else EMPTY

    def shortage(
        self, name: str, requests: model.Pairs, *, preemptible: bool, less: Amounts = EMPTY
    ) -> model.Shortage | None:
        """Say why a pod that is counted as requested may not run, None where it may.

        `requests` leaves out ``pods``; `less` is used now and will be gone before the pod runs.
        """
        found = self.figures(name)
        if found is None:
            return None
        asked = {key: amount for key, amount in checks.wanted(requests).items() if key in found.cap}
        short = checks.exceeded(name, model.Kind.LIMIT, (found.limit, found.used, asked), less)
        if short is None and not preemptible:
            bounds = (found.minimum, found.non_preemptible_used, asked)
            short = checks.exceeded(name, model.Kind.NON_PREEMPTIBLE, bounds, EMPTY)
        if short is None and self._rules.check_parents:
            short = self._above(name, asked, less)
        return short

    def _above(self, name: str, asked: Amounts, less: Amounts) -> model.Shortage | None:
        path = self.path(name)
        for ancestor in path[1:]:
            found = self.figures(ancestor)
            if found is None:
                continue
            limit = {key: found.limit[key] for key in asked if key in found.limit}
            short = checks.exceeded(ancestor, model.Kind.PARENT, (limit, found.used, asked), less)
            if short is not None:
                topo = (names.ROOT_QUOTA, *reversed(path))
                return model.Shortage(
                    short.quota, short.kind, short.limit, short.used, asked, short.exceeded, topo
                )
        return None
