"""What people and collectors hear of preemptions: events on preemptor and victims, and metrics."""

from typing import Final

from api.koordinator import event_reasons
from extender.framework import views
from extender.framework.eviction import victims
from extender.preemption import planner
from extender.state import records
from kube.controllers import recorder
from process.runtime import metrics

_BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)


class Notices:
    """Tells of preemptions."""

    def __init__(self, registry: metrics.Registry, events: recorder.EventRecorder) -> None:
        self._events = events
        self._results = registry.counter(
            "koord_extender_preemptions_total",
            "Preemptions of the extender by what became of them.",
            ("result",),
        )
        self._victims = registry.counter(
            "koord_extender_preemption_victims_total",
            "Pods evicted for others by the extender, by what became of the eviction.",
            ("result",),
        )
        self._seconds = registry.histogram(
            "koord_extender_preemption_seconds",
            "Time from the first eviction until the pod that preempted was bound.",
            (),
            _BUCKETS,
        )

    def count(self, result: str) -> None:
        """Count how a preemption ended."""
        self._results.labels(result).inc()

    def placed(self, seconds: float) -> None:
        """Take in that a pod that preempted is bound."""
        self.count("placed")
        self._seconds.observe(max(0.0, seconds))

    def planned(self, plan: planner.Plan, *, enforced: bool) -> None:
        """Put the arithmetic on the pod that preempts."""
        pod = plan.pod
        reason: event_reasons.Reason = "Preempting" if enforced else "WouldPreempt"
        self._say(pod.key, pod.uid, "Normal", reason, plan.sentence(pod.key.partition("/")[0]))

    def evicted(self, plan: planner.Plan, victim: views.Claim, result: str) -> None:
        """Record an event on a victim that says for which pod it was evicted, and why."""
        self._victims.labels(result).inc()
        if result != "evicted":
            return
        preemptor = planner.shown(plan.pod.key, plan.pod.uid, victim.pod.namespace)
        note = (
            f"evicted for {preemptor} of priority {plan.pod.requirements.priority}, above its own "
            f"{victims.priority_of(victim)}, which was refused: {plan.refusal}"
        )
        self._say(victim.pod.key, victim.pod.uid, "Warning", "Preempted", note)

    def failed(self, pod: records.PodRecord, why: str) -> None:
        """Put on a pod why its preemption came to nothing."""
        self._say(pod.key, pod.uid, "Warning", "PreemptionFailed", why)

    def _say(
        self, key: str, uid: str, kind: recorder.Kind, reason: event_reasons.Reason, note: str
    ) -> None:
        namespace, _, name = key.partition("/")
        about = recorder.Regarding("v1", "Pod", name, namespace, uid)
        self._events.event(about, kind, reason, note, "Preempt")
