"""Move as few pods as bring the domains of a topology within the skew that they ask for."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates
from descheduler.framework.pods import pod_order
from descheduler.model import nodeinfo, podinfo
from descheduler.plugins.remove_pods_violating_topology_spread_constraint import (
    constraints,
    domains,
)

NAME: Final = "RemovePodsViolatingTopologySpreadConstraint"


@dataclasses.dataclass(frozen=True, slots=True)
class _Namespace:
    """The pods of one namespace and their constraints."""

    view: protocols.View
    nodes: Mapping[str, nodeinfo.Node]
    """Those of the profile, which pods may leave and go to."""
    rows: protocols.NodeRows
    """The same, one table for the questions about all pods of a round."""
    counted: Sequence[domains.Domains]
    having: Mapping[constraints.Constraint, frozenset[str]]
    """Uids of the pods that ask for a constraint."""
    done: set[str]
    """Uids of the pods that were suggested or have to stay."""


class RemovePodsViolatingTopologySpreadConstraint:
    """Pods leave the fullest domains for the emptiest, one by one, until the skew is small enough.

    Other constraints that count a pod are kept or left no worse.
    """

    name = NAME

    def __init__(
        self, arguments: compliance.RemovePodsViolatingTopologySpreadConstraintArgs
    ) -> None:
        self._arguments = arguments.complete()

    def balance(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest pods, namespace by namespace."""
        del memory
        for namespace in self._namespaces(view):
            for one in namespace.counted:
                yield from self._balanced(namespace, one)
        return protocols.NO_MEMORY

    def _namespaces(self, view: protocols.View) -> Iterator[_Namespace]:
        """Yield the namespaces in which a constraint is violated."""
        known: dict[tuple[object, ...], domains.Places] = {}
        nodes = {node.name: node for node in view.nodes}
        rows = view.fit.rows(list(nodes))
        for pods in self._pods(view):
            having = self._having(pods)
            counted = []
            for one in sorted(having, key=_order):
                key = one.topology_key, one.nodes, one.tolerations
                if key not in known:
                    known[key] = domains.places(one, view.picture.nodes)
                counted.append(domains.Domains(one, known[key], pods))
            if any(one.is_violated for one in counted):
                of = {one: frozenset(uids) for one, uids in having.items()}
                yield _Namespace(view, nodes, rows, counted, of, set())

    def _pods(self, view: protocols.View) -> Iterator[list[podinfo.Pod]]:
        """Yield the pods of each namespace that is looked at, on whatever node they are."""
        chosen = self._arguments.namespaces
        found: dict[str, list[podinfo.Pod]] = {}
        for name in view.picture.nodes:
            for pod in view.picture.on_node.get(name, ()):
                if pod.is_active and (chosen is None or chosen.hold(pod.namespace)):
                    found.setdefault(pod.namespace, []).append(pod)
        return (found[namespace] for namespace in sorted(found))

    def _having(self, pods: Sequence[podinfo.Pod]) -> dict[constraints.Constraint, set[str]]:
        found: dict[constraints.Constraint, set[str]] = {}
        for pod in pods:
            for one in constraints.of_pod(pod, self._arguments.constraints) if pod.spread else ():
                found.setdefault(one, set()).add(pod.uid)
        return found

    def _balanced(self, namespace: _Namespace, one: domains.Domains) -> protocols.Suggestions:
        """Suggest pods until a constraint holds, or none of those that could help may leave."""
        while one.is_violated:
            for pod, targets in self._moves(namespace, one):
                namespace.done.add(pod.uid)
                answer = yield protocols.Suggestion(
                    pod, NAME, _reason(one), protocols.Purpose.COMPLY, targets
                )
                if answer:
                    target = answer.node if isinstance(answer, protocols.Target) else targets[0]
                    for other in namespace.counted:
                        other.move(pod, target)
                    break
            else:
                break
        return protocols.NO_MEMORY

    def _moves(
        self, namespace: _Namespace, one: domains.Domains
    ) -> Iterator[tuple[podinfo.Pod, tuple[str, ...]]]:
        """Yield pods of domains that have too many, each with the nodes it should go to."""
        for domain in one.fullest_first():
            for pod in pod_order.ordered(one.inside(domain)):
                if not self._may_leave(namespace, one, pod):
                    continue
                targets = self._targets(namespace, one, pod, domain)
                if targets:
                    yield pod, targets

    def _may_leave(self, namespace: _Namespace, one: domains.Domains, pod: podinfo.Pod) -> bool:
        selector = self._arguments.label_selector
        if (
            pod.uid in namespace.done
            or pod.uid not in namespace.having[one.constraint]
            or pod.node not in namespace.nodes
            or not (selector is None or selector.selects(pod.labels))
        ):
            return False
        if candidates.may_leave(namespace.view, pod):
            return True
        namespace.done.add(pod.uid)
        return False

    def _targets(
        self, namespace: _Namespace, one: domains.Domains, pod: podinfo.Pod, domain: str
    ) -> tuple[str, ...]:
        """Return the nodes that take a pod, of the emptiest domain that has any."""
        better = one.better(domain)
        if not better:
            return ()
        counting = (other for other in namespace.counted if other.constraint.counts(pod))
        borne = [other.bearing(pod) for other in counting]
        found: dict[str, list[str]] = {name: [] for name in better}
        for name in self._takers(namespace, pod):
            there = one.domain(name)
            if there in found and all(bears(name) for bears in borne):
                found[there].append(name)
        return next((tuple(names) for names in found.values() if names), ())

    def _takers(self, namespace: _Namespace, pod: podinfo.Pod) -> Iterator[str]:
        if self._arguments.topology_balance_node_fit:
            return itertools.compress(namespace.nodes, namespace.rows.fitting(pod).tolist())
        return (name for name, node in namespace.nodes.items() if node.is_schedulable)


def _order(one: constraints.Constraint) -> tuple[object, ...]:
    """Return what constraints are sorted by: hard ones first."""
    return not one.is_hard, one.topology_key, one.max_skew, repr(one)


def _reason(one: domains.Domains) -> str:
    sizes = sorted(one.sizes.values())
    key, most = one.constraint.topology_key, one.constraint.max_skew
    return f"domains of {key} have {sizes[0]} to {sizes[-1]} pods, maxSkew is {most}"
