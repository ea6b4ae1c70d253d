"""Keeps the status of every Recommendation up to what its pods use."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import resources
from api.kubernetes import core
from kube.controllers import controller
from kube.informers import store
from manager.model import origins, projections
from manager.recommendation import learned as recommended
from manager.recommendation import plan as recommendation
from manager.reconcile import apply
from process.runtime import clock as clocks

_OWNED: Final = {"ReplicaSet": "apps/v1", "Job": "batch/v1"}


def owner(raw: core.Pod) -> origins.Owner | None:
    """Keep of an object only who controls it."""
    return origins.owner(raw.metadata)


def wish_changed(change: store.Change[dict[str, Any]]) -> Iterator[str]:
    """Return the key unless only the answer changed, which is ours."""
    before, after = change.old, change.new
    if before is None or after is None or before.get("spec") != after.get("spec"):
        yield change.key


class Asked:
    """The namespaces with recommendations, and the pods in them."""

    def __init__(self, namespaces: set[str], pods: store.Store[projections.Pod]) -> None:
        self._namespaces = namespaces
        self._pods = pods
        self._keys: dict[str, set[str]] = {}
        self._count: dict[str, int] = {}
        pods.listen(self._follow_pods)

    def follow(self, change: store.Change[Any]) -> None:
        """Take in that a recommendation came or went."""
        namespace = change.key.partition("/")[0]
        count = self._count.get(namespace, 0)
        count += (change.new is not None) - (change.old is not None)
        self._count[namespace] = count
        if count and namespace not in self._namespaces:
            self._namespaces.add(namespace)
            prefix = f"{namespace}/"
            self._keys[namespace] = {key for key, _ in self._pods.items() if key.startswith(prefix)}
        elif not count:
            self._namespaces.discard(namespace)
            self._keys.pop(namespace, None)
            del self._count[namespace]

    def pods(self, namespace: str) -> Iterator[tuple[str, projections.Pod]]:
        """Yield the pods of a namespace by name."""
        for key in self._keys.get(namespace, ()):
            pod = self._pods.get(key)
            if pod is not None:
                yield key.partition("/")[2], pod

    def _follow_pods(self, change: store.Change[projections.Pod]) -> None:
        keys = self._keys.get(change.key.partition("/")[0])
        if keys is None:
            return
        if change.new is None:
            keys.discard(change.key)
        else:
            keys.add(change.key)


@dataclasses.dataclass(frozen=True, slots=True)
class Stores:
    """What recommendations are made of."""

    recommendations: store.Store[dict[str, Any]]
    metrics: store.Store[projections.Metric]
    owners: Mapping[str, store.Store[origins.Owner]]
    """Who owns those that own pods, by their kind."""
    asked: Asked


class Recommendations:
    """What reconciling a recommendation needs to see."""

    def __init__(
        self,
        seen: Stores,
        writer: apply.Writer,
        clock: clocks.Clock,
        rules: recommendation.Rules,
    ) -> None:
        self._seen = seen
        self._writer = writer
        self._clock = clock
        self._rules = rules

    async def reconcile(self, key: str) -> controller.Outcome:
        """Bring the status of one recommendation about."""
        raw = self._seen.recommendations.get(key)
        if raw is None:
            return controller.Outcome("the recommendation is gone", changed=False)
        namespace, _, name = key.partition("/")
        unseen = self._writer.unseen(
            resources.RECOMMENDATIONS, name, self._seen.recommendations, namespace
        )
        if unseen is not None:
            return unseen
        return await self._writer.carry_out(
            recommendation.planned(self._observe(raw, namespace), self._rules)
        )

    def _observe(self, raw: Mapping[str, Any], namespace: str) -> recommendation.Seen:
        matched, reports = 0, {}
        try:
            concerns = recommendation.choice(recommendation.target(raw))
        except ValueError:
            return recommendation.Seen(raw, 0, {}, self._clock.now())
        # Pods of one template share where they come from, so there are few answers.
        meant: dict[int, bool] = {}
        for name, pod in self._seen.asked.pods(namespace):
            if pod.origin is None:
                continue
            found = meant.get(id(pod.origin))
            if found is None:
                owners = recommendation.chain(pod.origin, lambda one: self._owner(namespace, one))
                found = concerns(pod.origin, owners)
                meant[id(pod.origin)] = found
            if not found:
                continue
            matched += 1
            measured = self._report(f"{namespace}/{name}", pod)
            if measured is not None:
                reports[name] = measured
        return recommendation.Seen(raw, matched, reports, self._clock.now())

    def _owner(self, namespace: str, one: origins.Owner) -> origins.Owner | None:
        """Return who controls an owner, as far as that is watched."""
        watched = self._seen.owners.get(one.kind)
        if watched is None or one.api_version != _OWNED[one.kind]:
            return None
        return watched.get(f"{namespace}/{one.name}")

    def _report(self, key: str, pod: projections.Pod) -> recommended.Report | None:
        metric = self._seen.metrics.get(pod.node)
        if metric is None:
            return None
        report, at = metric.report, metric.report.updated_at
        if at is None:
            return None
        used = report.containers.get(key)
        if used is None and pod.origin is not None and len(pod.origin.containers) == 1:
            # An agent that reports no containers: the only one is the pod.
            whole = report.pods.get(key)
            used = None if whole is None else {pod.origin.containers[0]: whole[0]}
        if not used:
            return None
        return recommended.Report(
            at,
            {name: recommended.Use(one.cpu / 1000, one.memory) for name, one in used.items()},
        )
