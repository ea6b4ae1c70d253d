"""Reports pods that were created while no webhook answered."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

from api import resources
from api.koordinator import event_reasons
from kube.controllers import controller
from kube.informers import store
from manager.model import projections
from manager.reconcile import actions, apply
from process.runtime import metrics

_REASONS: Final[Mapping[str, event_reasons.Reason]] = {
    "unchanged": "AdmissionMissed",
    "refused": "AdmissionWouldRefuse",
}


def faults_changed(change: store.Change[projections.Pod]) -> Iterable[str]:
    """Return the key when what is wrong with a pod has changed."""
    before = () if change.old is None else change.old.faults
    after = () if change.new is None else change.new.faults
    if before != after:
        yield change.key


@dataclasses.dataclass(frozen=True, slots=True)
class Missed:
    """Writes an event on each pod that slipped through."""

    pods: store.Store[projections.Pod]
    writer: apply.Writer

    async def reconcile(self, key: str) -> controller.Outcome:
        """Tell of one pod."""
        pod = self.pods.get(key)
        if pod is None or not pod.faults:
            return controller.Outcome("nothing is wrong with it", changed=False)
        namespace, _, name = key.partition("/")
        steps = tuple(
            actions.Tell(
                resources.PODS,
                name,
                pod.uid,
                _REASONS[fault.kind],
                fault.note,
                warning=True,
                namespace=namespace,
            )
            for fault in pod.faults
        )
        kinds = ", ".join(fault.kind for fault in pod.faults)
        return await self.writer.carry_out(
            actions.Plan(f"created without admission: {kinds}", steps)
        )


class Listing:
    """The pods that slipped through and are still there, for metrics and for people."""

    def __init__(self, pods: store.Store[projections.Pod], registry: metrics.Registry) -> None:
        self._found: dict[str, projections.Pod] = {}
        self._total = registry.counter(
            "koord_manager_missed_pods_total",
            "Pods found that were created without admission, by what became of them.",
            ("kind",),
            known=[(kind,) for kind in _REASONS],
        )
        self._present = registry.gauge(
            "koord_manager_missed_pods_present",
            "Pods that exist, have not ended, and were created without admission.",
        )
        self._present.set_function(lambda: len(self._found))
        pods.listen(self._changed)

    def _changed(self, change: store.Change[projections.Pod]) -> None:
        known = change.key in self._found
        if change.new is None or not change.new.faults:
            self._found.pop(change.key, None)
            return
        self._found[change.key] = change.new
        if not known:
            for fault in change.new.faults:
                self._total.labels(fault.kind).inc()

    def rows(self, most: int) -> list[dict[str, object]]:
        """Return what is known of up to so many pods, by name."""
        return [
            {
                "pod": key,
                "uid": pod.uid,
                "node": pod.node,
                "faults": [fault._asdict() for fault in pod.faults],
            }
            for key, pod in sorted(self._found.items())[:most]
        ]

    def __len__(self) -> int:
        """How many pods there are."""
        return len(self._found)
