"""Move as few pods as bring the domains of a topology within the skew that they ask for."""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from api.kubernetes import core
from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates
from descheduler.framework.pods import pod_order, pods_alike
from descheduler.model import nodeinfo, podinfo
from descheduler.plugins.remove_pods_violating_topology_spread_constraint import (
    constraints,
    domains,
)
from domain import wording
from domain.scoring import terms

NAME: Final = "RemovePodsViolatingTopologySpreadConstraint"
_MOST_LOOKS: Final = 1 << 19
"""Looks at nodes and pods of one namespace for the constraints of its pods."""
_MOST_BY_POD: Final = 64
"""The same for each of its pods, where there are many."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Namespace:
    """The pods of one namespace and their constraints."""

    view: protocols.View
    nodes: Mapping[str, nodeinfo.Node]
    """Those of the profile, which pods may leave and go to."""
    rows: protocols.NodeRows
    """The same, one table for the questions about all pods of a round."""
    counted: Sequence[domains.Domains]
    asked: "_Asked"
    """The constraints that pods ask for."""
    done: set[str]
    """Uids of the pods that were suggested or have to stay."""


_Counting = tuple[str, terms.NodeRequirements | None, tuple[core.Toleration, ...] | None]
"""Topology key, and what nodes must be like to count for a constraint."""


class _Asked:
    """The constraints that pods of one namespace ask for, read once per template."""

    def __init__(self, kinds: Collection[str]) -> None:
        self._kinds = kinds
        self._known: dict[tuple[int, int, int], tuple[constraints.Constraint, ...]] = {}

    def of(self, pod: podinfo.Pod) -> tuple[constraints.Constraint, ...]:
        """Return those of a pod."""
        if not pod.spread:
            return ()
        key = id(pod.spread), id(pod.labels), id(pod.wanted)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = constraints.of_pod(pod, self._kinds)
        return found

    def by(self, pods: Iterable[podinfo.Pod]) -> Collection[constraints.Constraint]:
        """Return those of any of the pods."""
        for pod in pods:
            self.of(pod)
        return dict.fromkeys(one for found in self._known.values() for one in found)


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
            # What holds is kept by every move, so that none of the others becomes violated.
            violated = [one for one in namespace.counted if one.is_violated]
            for one in sorted(violated, key=_order):
                yield from self._balanced(namespace, one)
                if view.limits.exhausted():
                    return candidates.stopped(view)
        return protocols.NO_MEMORY

    def _namespaces(self, view: protocols.View) -> Iterator[_Namespace]:
        """Yield the namespaces in which a constraint is violated."""
        known: dict[_Counting, domains.Places] = {}
        nodes = {node.name: node for node in view.nodes}
        rows = view.fit.rows(list(nodes))
        for pods in self._pods(view):
            asked = _Asked(self._arguments.constraints)
            counted = _counted(asked.by(pods), pods, view.picture.nodes, known)
            if any(one.is_violated for one in counted):
                yield _Namespace(view, nodes, rows, counted, asked, set())

    def _pods(self, view: protocols.View) -> Iterator[list[podinfo.Pod]]:
        """Yield the pods of each namespace that is looked at, on whatever node they are."""
        chosen = self._arguments.namespaces
        found: dict[str, list[podinfo.Pod]] = {}
        for name in view.picture.nodes:
            for pod in view.picture.on_node.get(name, ()):
                if pod.is_active and (chosen is None or chosen.hold(pod.namespace)):
                    found.setdefault(pod.namespace, []).append(pod)
        return (found[namespace] for namespace in sorted(found))

    def _balanced(self, namespace: _Namespace, one: domains.Domains) -> protocols.Suggestions:
        """Suggest pods until a constraint holds, or none of those that could help may leave."""
        while one.is_violated and not namespace.view.limits.exhausted():
            for pod, targets in self._moves(namespace, one):
                namespace.done.add(pod.uid)
                answer = yield protocols.Suggestion(
                    pod,
                    NAME,
                    _reason(one),
                    protocols.Purpose.COMPLY,
                    targets,
                    needs_target=self._arguments.topology_balance_node_fit,
                )
                if answer:
                    target = candidates.landing(answer, targets)
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
                if not self._is_concerned(namespace, one, pod):
                    continue
                if candidates.is_limited(namespace.view, pod):
                    yield pod, ()
                elif self._may_leave(namespace, pod):
                    targets = self._targets(namespace, one, pod, domain)
                    if targets:
                        yield pod, targets

    def _is_concerned(self, namespace: _Namespace, one: domains.Domains, pod: podinfo.Pod) -> bool:
        """Whether a pod asks for a constraint, and nothing was decided about it yet."""
        selector = self._arguments.label_selector
        return (
            pod.uid not in namespace.done
            and one.constraint in namespace.asked.of(pod)
            and pod.node in namespace.nodes
            and (selector is None or selector.selects(pod.labels))
        )

    def _may_leave(self, namespace: _Namespace, pod: podinfo.Pod) -> bool:
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


def _order(counted: domains.Domains) -> tuple[object, ...]:
    """Return what constraints are sorted by: hard ones first."""
    one = counted.constraint
    return not one.is_hard, one.topology_key, one.max_skew, repr(one)


def _counted(
    asked: Iterable[constraints.Constraint],
    pods: Sequence[podinfo.Pod],
    nodes: Mapping[str, nodeinfo.Node],
    known: dict[_Counting, domains.Places],
) -> Sequence[domains.Domains]:
    """Count the pods of a namespace for each constraint; for none where that is too much.

    Pods share constraints. Where each has one of its own, the effort is their square, or their
    number times that of nodes, so they stay where they are.
    """
    if len(known) * len(nodes) > _MOST_LOOKS:
        known.clear()
    left = max(_MOST_LOOKS, _MOST_BY_POD * len(pods))
    alike, counted = pods_alike.Alike(pods), list[domains.Domains]()
    for one in asked:
        key = _counting(one)
        if key not in known:
            known[key] = domains.places(one, nodes)
            left -= len(nodes)
        counted.append(domains.Domains(one, known[key], alike))
        left -= counted[-1].size + alike.looks(one.selector)
        if left < 0:
            return ()
    return counted


def _counting(one: constraints.Constraint) -> _Counting:
    return one.topology_key, one.nodes, one.tolerations


def _reason(one: domains.Domains) -> str:
    key, most = one.constraint.topology_key, one.constraint.max_skew
    pods = wording.count(one.most, "pod", "pods")
    return f"domains of {key} have {one.least} to {pods}, maxSkew is {most}"
