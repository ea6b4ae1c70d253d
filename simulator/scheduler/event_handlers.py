"""What the scheduler learns from the store: which pods wait, and what may let them fit."""

from api import resources
from process.runtime import clock as clocks
from simulator.apiserver.storage import object_store
from simulator.scheduler import cluster_events, intree, scheduling_queue, snapshot

FINISHED = ("Succeeded", "Failed")


class Intake:
    """Keeps the picture and the queue up to date with every write to pods and nodes."""

    def __init__(
        self,
        names: tuple[str, ...],
        view: snapshot.Snapshot,
        queue: scheduling_queue.Queue,
        clock: clocks.Clock,
    ) -> None:
        self._names = names
        self._view = view
        self._queue = queue
        self._clock = clock
        self.waiting: dict[str, intree.PodInfo] = {}
        """Pods of this scheduler without a node."""

    def start(self, store: object_store.Objects) -> None:
        """Take in everything that is there."""
        for node in store.list(resources.NODES).items:
            self._view.set_node(node)
        for pod in store.list(resources.PODS).items:
            self._on_pod(None, pod)

    def is_current(self, pod: intree.PodInfo) -> bool:
        """Whether this very pod still waits for a node."""
        found = self.waiting.get(pod.key)
        return found is not None and found.uid == pod.uid

    def on_event(self, event: object_store.Event) -> None:
        """Take in one write."""
        gone = event.type == "DELETED"
        if event.key[:2] == (resources.PODS.group, resources.PODS.plural):
            self._on_pod(event.previous, None if gone else event.object)
        elif event.key[:2] == (resources.NODES.group, resources.NODES.plural):
            self._on_node(event.previous, None if gone else event.object)

    def _on_node(self, old: object_store.Object | None, new: object_store.Object | None) -> None:
        if new is not None:
            self._view.set_node(new)
        elif old is not None:
            self._view.remove_node(old["metadata"]["name"])
        now = self._clock.monotonic()
        for happening in cluster_events.of_node(old, new):
            self._queue.happened(happening, now)

    def _on_pod(self, old: object_store.Object | None, new: object_store.Object | None) -> None:
        if new is not None and new.get("status", {}).get("phase") in FINISHED:
            new = None
        if new is None:
            if old is not None:
                self._on_pod_gone(intree.read_pod(old))
        elif new["spec"].get("nodeName"):
            self._on_pod_placed(old, intree.read_pod(new))
        elif new["spec"].get("schedulerName") in self._names:
            self._on_pod_waiting(old, intree.read_pod(new))

    def _on_pod_gone(self, pod: intree.PodInfo) -> None:
        self.waiting.pop(pod.key, None)
        self._queue.remove(pod.key)
        had_room = bool(pod.node) or pod.uid in self._view.assumed
        self._view.remove_pod(pod.uid)
        if had_room:
            now = self._clock.monotonic()
            self._queue.happened(scheduling_queue.Happening.POD_GONE, now)
        elif pod.nominated:
            self._on_nomination_gone(pod)

    def _on_nomination_gone(self, pod: intree.PodInfo) -> None:
        """Wake the pods that a nomination kept away; more important ones never minded it."""
        now = self._clock.monotonic()
        self._queue.happened(scheduling_queue.Happening.POD_GONE, now, pod.priority)

    def _on_pod_placed(self, old: object_store.Object | None, pod: intree.PodInfo) -> None:
        self.waiting.pop(pod.key, None)
        self._queue.remove(pod.key)
        self._view.set_pod(pod)
        fresh = old is None or not old["spec"].get("nodeName")
        kinds = scheduling_queue.Happening
        happening = kinds.POD_ADDED if fresh else kinds.POD_CHANGED
        self._queue.happened(happening, self._clock.monotonic())

    def _on_pod_waiting(self, old: object_store.Object | None, pod: intree.PodInfo) -> None:
        self.waiting[pod.key] = pod
        self._view.nominate(pod, pod.nominated)
        spec, meta = pod.raw["spec"], pod.raw["metadata"]
        if spec.get("schedulingGates") or "deletionTimestamp" in meta:
            self._queue.remove(pod.key)
        elif pod.key not in self._queue:
            self._queue.add(pod.key, pod.priority, meta.get("creationTimestamp", ""))
        elif old is not None:
            happening = cluster_events.of_pod(old, pod.raw)
            self._queue.changed(pod.key, happening, self._clock.monotonic())
        before = None if old is None else intree.read_pod(old)
        if before is not None and before.nominated and before.nominated != pod.nominated:
            self._on_nomination_gone(before)
