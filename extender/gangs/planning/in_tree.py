"""What kube-scheduler's own filters say of a member and a node, as far as it can be computed. Pure.

Resources of every name, the number of pods, host ports, node selector, required node affinity and
taints. Volumes, topology spread and affinity to pods are not looked at.
"""

import functools
from collections.abc import Sequence
from typing import Final

import numpy as np

from domain import short_memo
from domain.quota import placement
from extender.framework import verdicts, views
from extender.framework.nodes import row_memo
from extender.state import cluster_state, records

PODS: Final = "pods"
TOO_MANY_PODS: Final = "Too many pods"
SELECTOR: Final = "node(s) didn't match Pod's node affinity/selector"
TAINT: Final = "node(s) had untolerated taint(s)"
PORTS: Final = "node(s) didn't have free ports for the requested pod ports"
UNKNOWN: Final = "node is gone"
UNBOUNDED: Final = 1 << 31
"""Pods of a node that sets no bound."""
_EVERY: Final = ("0.0.0.0", "")  # noqa: S104 - addresses that mean all of them


class Requirement:
    """What one sort of member requires, asked about the nodes of one state."""

    def __init__(
        self,
        cluster: cluster_state.ClusterState,
        wanted: records.PodRequirements,
        nodes: placement.Requirements,
        rooms: row_memo.RowMemo | None = None,
    ) -> None:
        """`rooms`: what is remembered of the nodes of the state for all sorts of member."""
        self._rooms = rooms or row_memo.RowMemo(1)
        self._cluster, self._wanted, self._nodes = cluster, wanted, nodes
        self._requests = tuple((name, value) for name, value in wanted.requests if value)
        self._ports: dict[tuple[str, int], set[str]] = {}
        for address, protocol, number in wanted.host_ports:
            self._ports.setdefault((protocol or "TCP", number), set()).add(address)

    def refusals(self, view: views.View, rows: verdicts.Rows) -> list[str]:
        """Return why each row refuses the member, empty where one does not."""
        found, fits = [""] * rows.size, np.ones(rows.size, dtype=np.bool_)
        for name, value in self._requests:
            column = view.resources.get(name)
            if column is not None:
                left = view.allocatable[column].take(rows) - view.requested[column].take(rows)
                for place in np.flatnonzero(fits & (left < value)).tolist():
                    found[place] = f"Insufficient {name}"
                fits &= left >= value
        for place in self._doubtful(view, rows, np.flatnonzero(fits)):
            found[place] = self._other(view, view.names[int(rows[place])])
        return found

    def _doubtful(self, view: views.View, rows: verdicts.Rows, places: verdicts.Rows) -> list[int]:
        """Return those places of which columns do not tell enough."""
        if self._is_plain(view):
            compute = functools.partial(self._have_room, view)
            have_room = self._rooms.get(None, view, rows[places], compute)
            places = places[have_room == 0]
        found: list[int] = places.tolist()
        return found

    def _is_plain(self, view: views.View) -> bool:
        """Whether nothing but taints and the number of pods counts besides what columns tell."""
        if self._nodes.nodes is not None or self._wanted.host_ports:
            return False
        return all(name in view.resources for name, _ in self._requests)

    def _have_room(self, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Say by 1 which nodes have no taints and take one more pod; 0 where a look says more."""
        return np.array([self._has_room(view.names[row]) for row in rows.tolist()], dtype=np.int64)

    def _has_room(self, name: str) -> bool:
        node = self._cluster.node(name)
        if node is None or node.taints:
            return False
        return self._cluster.count_on(name) < _most_pods(node.allocatable)

    def refusal(
        self, view: views.View, row: int, claims: Sequence[views.Claim] | None = None
    ) -> str:
        """Return why one row refuses the member, empty where it does not.

        `claims` are what is held there, where the view shows others than the state has.
        """
        for name, value in self._requests:
            column = view.resources.get(name)
            if column is not None:
                left = view.allocatable[column, row] - view.requested[column, row]
                if left < value:
                    return f"Insufficient {name}"
        return self._other(view, view.names[row], claims)

    def share(self, view: views.View, rows: verdicts.Rows) -> verdicts.Shares:
        """Return which share of its scarcest requested resource each row has free, 0 to 1."""
        if rows.size == 1:
            return np.array((self._share(view, rows.item()),))
        least = np.ones(rows.size)
        for name, _ in self._requests:
            column = view.resources.get(name)
            if column is not None:
                offered = view.allocatable[column].take(rows)
                free = offered - view.requested[column].take(rows)
                least = np.minimum(least, free / np.maximum(offered, 1))
        return np.maximum(least, 0.0)

    def _share(self, view: views.View, row: int) -> float:
        """Return the same of one row: plain numbers are cheaper than vectors of one."""
        least = 1.0
        for name, _ in self._requests:
            column = view.resources.get(name)
            if column is not None:
                offered = view.allocatable.item(column, row)
                free = offered - view.requested.item(column, row)
                least = min(least, free / max(offered, 1))
        return max(least, 0.0)

    def _other(self, view: views.View, name: str, held: Sequence[views.Claim] | None = None) -> str:
        """Return what no column tells."""
        node = self._cluster.node(name)
        if node is None:
            return UNKNOWN
        if why := self._unsuitable(node):
            return why
        most = _most_pods(node.allocatable)
        count = self._cluster.count_on(name) if held is None else len(held)
        others = [one for one in self._requests if one[0] not in view.resources]
        is_full = count >= most
        if not is_full and not others and not self._wanted.host_ports:
            # Nothing depends on what the pods of the node are like.
            return ""
        claims = self._cluster.claims_on(name) if held is None else held
        if is_full and _firm(claims) >= most:
            return TOO_MANY_PODS
        offered = dict(node.allocatable) if others else {}
        for resource, value in others:
            left = offered.get(resource, 0)
            if left < value or left - _held(claims, resource) < value:
                return f"Insufficient {resource}"
        if self._ports and self._taken(claims):
            return PORTS
        return ""

    def _taken(self, claims: Sequence[views.Claim]) -> bool:
        """Whether a pod of the node listens on a port that the member wants as well."""
        for claim in claims:
            if claim.kind in views.FIRM:
                for address, protocol, number in claim.pod.requirements.host_ports:
                    wanted = self._ports.get((protocol or "TCP", number))
                    if wanted and (address in _EVERY or not wanted.isdisjoint((address, *_EVERY))):
                        return True
        return False

    def _unsuitable(self, node: records.NodeRecord) -> str:
        """Return why labels and taints of a node keep the member away."""
        if placement.eligible(self._nodes, node.name, node.labels, node.taints):
            return ""
        if placement.eligible(self._nodes, node.name, node.labels, ()):
            return TAINT
        return SELECTOR


@short_memo.remembered(4096)
def _most_pods(allocatable: records.Pairs) -> int:
    """Return how many pods a node takes."""
    return dict(allocatable).get(PODS, UNBOUNDED)


def _firm(claims: Sequence[views.Claim]) -> int:
    return sum(claim.kind in views.FIRM for claim in claims)


def _held(claims: Sequence[views.Claim], resource: str) -> int:
    """Return how much of a resource the pods of a node hold, as kube-scheduler counts them."""
    return sum(
        amount
        for claim in claims
        if claim.kind in views.FIRM
        for name, amount in claim.pod.requirements.requests
        if name == resource
    )


def free(cluster: cluster_state.ClusterState, name: str, resource: str) -> int:
    """Return how much of a resource a node has free, of `pods` how many it takes besides."""
    node = cluster.node(name)
    if node is None:
        return 0
    offered, claims = dict(node.allocatable), cluster.claims_on(name)
    if resource == PODS:
        return offered.get(PODS, UNBOUNDED) - _firm(claims)
    return offered.get(resource, 0) - _held(claims, resource)
