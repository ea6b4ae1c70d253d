"""All figures of a forest of ElasticQuotas: sums from its pods upward, shares downward. Pure."""

from collections.abc import Mapping, Sequence

from api import names, resources
from api.koordinator import quota as api
from domain.quota import membership, model, node, runtime, sums

Amounts = model.Amounts
EMPTY = model.EMPTY


class Evaluation:
    """Figures of quotas in their trees under some rules."""

    def __init__(
        self,
        rules: model.Rules,
        members: membership.Membership,
        total: Amounts,
        groups: Mapping[sums.Group, sums.Sums],
        weights: Mapping[str, Amounts],
    ) -> None:
        self._rules = rules
        self._membership = members
        self._total = total
        self._groups = groups
        self._weights = weights
        self._nodes: dict[str, node.Node] | None = None

    def total(self, tree: str = "") -> Amounts:
        """Return what a tree shares out at its top; of the default tree it may be negative."""
        members = self._membership
        if tree:
            root = members.roots.get(tree)
            return members.places[root].quota.total if root else EMPTY
        total = dict(self._total)
        for name in (names.DEFAULT_QUOTA, names.SYSTEM_QUOTA):
            for resource, used in self._outside(name).all.items():
                if used.used:
                    total[resource] = total.get(resource, 0) - used.used
        for root in members.roots.values():
            one = members.places[root].quota
            if not one.ignores_default_tree:
                for resource, amount in one.total.items():
                    total[resource] = total.get(resource, 0) - amount
        return total

    def figures(self, name: str) -> model.Figures | None:
        """Return all figures of a quota, None where it is unknown."""
        at = self._node(name)
        if at is None:
            return None
        outside = model.is_reserved(name)
        keys = tuple(at.cap)
        limit = at.runtime if self._rules.runtime and not outside else at.cap
        allocated = {key: at.allocated[key] for key in keys}
        return model.Figures(
            cap=at.cap,
            minimum=at.minimum,
            scaled_minimum=at.scaled,
            limit=limit,
            runtime=at.runtime,
            request={key: at.request(key) for key in keys},
            child_request=at.child_request,
            limited_request={key: at.limited(key) for key in keys},
            used={key: at.all[key].used for key in keys},
            non_preemptible_used={key: at.all[key].non_preemptible_used for key in keys},
            non_preemptible_request={key: at.all[key].non_preemptible_request for key in keys},
            self_used={key: at.own[key].used for key in keys},
            self_request={key: at.own[key].request for key in keys},
            guaranteed={key: at.guaranteed(key) for key in keys},
            allocated=allocated,
        )

    def derivation(self, name: str) -> Sequence[model.Step]:
        """Return how the runtime of a quota comes about, from the top of its tree downward."""
        steps: list[model.Step] = []
        for each in reversed(membership.path(self._membership, name)):
            place = self._membership.places[each]
            for key in sorted(self._evaluated[each].cap):
                total = self._to_share(place, key)
                if total is not None:
                    steps.append(self._step(place, key, total))
        return tuple(steps)

    def _step(self, place: membership.Place, key: str, total: int) -> model.Step:
        siblings = self._siblings(place, key)
        position = [one.quota.name for one in siblings].index(place.quota.name)
        column = self._column(siblings, key, total)
        told: list[list[model.Round]] = []
        given = runtime.share(total, column, told)
        at = siblings[position]
        first = [
            min(request, minimum) if lends else minimum
            for request, minimum, lends in zip(
                column.requests, column.first, column.lends, strict=True
            )
        ]
        return model.Step(
            quota=place.quota.name,
            parent=place.parent or names.ROOT_QUOTA,
            resource=key,
            total=total,
            minimum=at.minimum.get(key, 0),
            minimums=sum(one.minimum.get(key, 0) for one in siblings),
            scaled_minimum=at.scaled.get(key, 0),
            guaranteed=column.first[position],
            request=column.requests[position],
            weight=column.weights[position],
            lends=column.lends[position],
            joined=column.requests[position] > column.first[position],
            remaining=total - sum(first),
            rounds=tuple(told[position]),
            runtime=given[position],
        )

    # --- Evaluation ----------------------------------------------------------------------------

    def _name_of(self, label: str, namespace: str) -> str:
        return self._membership.name_of(label, namespace, default=self._rules.default_quota)

    def _node(self, name: str) -> node.Node | None:
        if name in (names.DEFAULT_QUOTA, names.SYSTEM_QUOTA):
            return self._outside(name)
        return self._evaluated.get(name)

    def _outside(self, name: str) -> node.Node:
        """Return the default or the system quota, which stand beside all trees."""
        written = self._membership.reserved.get(name)
        rules = self._rules
        most = rules.default_max if name == names.DEFAULT_QUOTA else rules.system_max
        if written is None or not written.cap:
            written = _reserved(name, most)
        at = node.Node(written, lends=True)
        for group, total in self._groups.items():
            if self._name_of(*group) == name:
                at.add_own(total)
        node.total_up(at)
        return at

    @property
    def _evaluated(self) -> dict[str, node.Node]:
        if self._nodes is None:
            members = self._membership
            nodes = {
                name: node.Node(place.quota, lends=self._lends(place.quota))
                for name, place in members.places.items()
            }
            for group, total in self._groups.items():
                owner = nodes.get(self._name_of(*group))
                if owner is not None:
                    owner.add_own(total)
            for name in reversed(tuple(members.places)):
                node.total_up(nodes[name], [nodes[one] for one in members.children.get(name, ())])
            self._nodes = nodes
            for place in members.places.values():
                self._fill(place)
        return self._nodes

    def _fill(self, place: membership.Place) -> None:
        """Compute the runtime of a quota in every resource that it bounds."""
        at = self._evaluated[place.quota.name]
        for key, cap in at.cap.items():
            total = self._to_share(place, key)
            if total is None:
                at.runtime[key] = cap
                continue
            siblings = self._siblings(place, key)
            if key in at.minimum:
                scaled = runtime.scaled(total, [one.minimum.get(key, 0) for one in siblings])
                at.scaled[key] = (
                    scaled[siblings.index(at)] if self._rules.scale_min else at.minimum[key]
                )
            shares = runtime.share(total, self._column(siblings, key, total))
            at.runtime[key] = shares[siblings.index(at)]

    def _to_share(self, place: membership.Place, key: str) -> int | None:
        """Return what the parent of a quota shares out; None where it does not bound it."""
        if not place.parent:
            return self.total(place.tree).get(key, 0)
        return self._evaluated[place.parent].runtime.get(key)

    def _siblings(self, place: membership.Place, key: str) -> list[node.Node]:
        members = self._membership
        listed = members.children[place.parent or membership.top(place.tree)]
        nodes = self._evaluated
        return [nodes[name] for name in listed if key in nodes[name].cap]

    def _column(self, siblings: Sequence[node.Node], key: str, total: int) -> runtime.Column:
        guarantee = self._rules.guarantee
        minimums: Sequence[int] = [at.minimum.get(key, 0) for at in siblings]
        if self._rules.scale_min:
            minimums = runtime.scaled(total, minimums)
        if guarantee:
            minimums = [
                max(minimum, at.guaranteed(key))
                for minimum, at in zip(minimums, siblings, strict=True)
            ]
        return runtime.Column(
            requests=[at.limited(key) for at in siblings],
            first=minimums,
            weights=[self._weight(at.quota, key) for at in siblings],
            lends=[at.lends for at in siblings],
            priorities=[at.quota.priority for at in siblings],
        )

    def _lends(self, one: api.Quota) -> bool:
        return one.lends and not self._rules.guarantee

    def _weight(self, one: api.Quota, key: str) -> int:
        return max(0, self._weights.get(one.name, one.weight).get(key, 0))


def _reserved(name: str, most: Amounts) -> api.Quota:
    return api.Quota(
        name=name,
        namespace="",
        resource=resources.ELASTIC_QUOTAS,
        minimum={},
        maximum=most,
        hard={},
        weight={},
        used={},
    )
