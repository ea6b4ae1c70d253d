"""What the stand-in scheduler writes: conditions, events, bindings and evictions."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from api import resources
from process.runtime import clock as clocks
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import event_versions
from simulator.apiserver.storage import lifecycle, object_store
from simulator.apiserver.verbs import subresources
from simulator.scheduler import diagnosis, intree, preemption

MOST_NOTED = 4096
"""Events that are counted up when they happen again; later ones are new events."""
UNSCHEDULABLE = "Unschedulable"
ERROR = "SchedulerError"


class Writer:
    """Writes to the object store as the scheduler of one name."""

    def __init__(self, store: object_store.Objects, clock: clocks.Clock) -> None:
        self._store = store
        self._clock = clock
        self._serial = 0
        self._noted: dict[tuple[str, str, str], str] = {}

    def refuse(
        self, pod: intree.PodInfo, reason: str, message: str, nominated: str | None = ""
    ) -> None:
        """Say in the pod's status and in an event why it has no node.

        A nomination that it had ends, unless another one is given or None.
        """
        self._event(pod, "Warning", "FailedScheduling", "Scheduling", message)

        def change(stored: object_store.Object) -> None:
            status = stored.setdefault("status", {})
            self._condition(status, "PodScheduled", "False", reason, message)
            if nominated:
                status["nominatedNodeName"] = nominated
            elif nominated is not None:
                status.pop("nominatedNodeName", None)

        with _unless_gone():
            self._store.modify(resources.PODS, pod.name, pod.namespace, change)

    def end_nomination(self, pod: intree.PodInfo) -> None:
        """Take back the node that was named for a pod."""

        def change(stored: object_store.Object) -> None:
            stored.get("status", {}).pop("nominatedNodeName", None)

        with _unless_gone():
            self._store.modify(resources.PODS, pod.name, pod.namespace, change)

    def placed(self, pod: intree.PodInfo, node: str) -> None:
        """Tell in an event where the pod went."""
        note = f"Successfully assigned {pod.key} to {node}"
        self._event(pod, "Normal", "Scheduled", "Binding", note)

    def bind(self, pod: intree.PodInfo, node: str) -> None:
        """Bind without an extender; raises AttemptError when the pod is not as it was."""
        binding = {"metadata": {"uid": pod.uid}, "target": {"kind": "Node", "name": node}}
        now = lifecycle.timestamp(self._clock.now())
        try:
            subresources.bind(self._store, pod.namespace, pod.name, binding, now)
        except api_errors.FailureError as error:
            raise diagnosis.AttemptError(error.message) from error

    def evict(self, victim: intree.PodInfo, preemptor: intree.PodInfo, node: str) -> None:
        """Delete a pod in favour of another one."""
        scheduler = preemptor.raw["spec"].get("schedulerName", "default-scheduler")
        message = f"{scheduler}: preempting to accommodate a higher priority pod"

        def change(stored: object_store.Object) -> None:
            status = stored.setdefault("status", {})
            self._condition(status, "DisruptionTarget", "True", preemption.REASON, message)

        with _unless_gone():
            self._store.modify(resources.PODS, victim.name, victim.namespace, change)
            how = object_store.Deletion(uid=victim.uid)
            self._store.delete(resources.PODS, victim.name, victim.namespace, how)
        note = f"Preempted by pod {preemptor.uid} on node {node}"
        self._event(victim, "Normal", "Preempted", "Preempting", note)

    def _condition(
        self,
        status: object_store.Object,
        kind: str,
        value: str,
        reason: str = "",
        message: str = "",
    ) -> None:
        conditions = status.setdefault("conditions", [])
        types = [condition.get("type") for condition in conditions]
        place = types.index(kind) if kind in types else len(conditions)
        since = lifecycle.timestamp(self._clock.now())
        if kind in types and conditions[place].get("status") == value:
            since = conditions[place].get("lastTransitionTime") or since
        new = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": since}
        new |= {"reason": reason} if reason else {}
        new |= {"message": message} if message else {}
        # In its place: to be said once more is no change.
        conditions[place : place + 1] = [new]

    def _event(self, pod: intree.PodInfo, kind: str, reason: str, action: str, note: str) -> None:
        note = diagnosis.shortened(note)
        now = lifecycle.micro_timestamp(self._clock.now())
        noted = (pod.uid, reason, note)
        if noted in self._noted and self._repeated(pod.namespace, self._noted[noted], now):
            return
        self._serial += 1
        name = f"{pod.name}.{int(self._clock.now() * 1e6):x}{self._serial:04x}"
        scheduler = pod.raw["spec"].get("schedulerName", "default-scheduler")
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name},
            "eventTime": now,
            "reportingController": scheduler,
            "reportingInstance": f"{scheduler}-simulator",
            "action": action,
            "reason": reason,
            "type": kind,
            "note": note,
            "regarding": _reference(pod.raw),
        }
        if self._store.find(resources.NAMESPACES, pod.namespace) is None:
            return
        self._store.create(resources.CORE_EVENTS, event_versions.stored(body), pod.namespace)
        self._noted[noted] = name
        if len(self._noted) > MOST_NOTED:
            del self._noted[next(iter(self._noted))]

    def _repeated(self, namespace: str, name: str, now: str) -> bool:
        """Count the same event once more; tells whether it still existed."""
        if self._store.find(resources.CORE_EVENTS, name, namespace) is None:
            return False

        def change(stored: object_store.Object) -> None:
            count = stored.get("series", {}).get("count", 1)
            stored["series"] = {"count": count + 1, "lastObservedTime": now}

        self._store.modify(resources.CORE_EVENTS, name, namespace, change)
        return True


def _reference(raw: Mapping[str, Any]) -> dict[str, Any]:
    meta = raw["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": meta["name"],
        "namespace": meta["namespace"],
        "uid": meta["uid"],
        "resourceVersion": meta.get("resourceVersion", ""),
    }


@contextlib.contextmanager
def _unless_gone() -> Iterator[None]:
    """The pod may be gone by now; then there is nothing to report."""
    try:
        yield
    except api_errors.FailureError as error:
        if error.code not in (404, 409):
            raise
