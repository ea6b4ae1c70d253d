"""Events, explanations and metrics of preemptions for gangs."""

import dataclasses
from typing import Any, Final

from api.koordinator import event_reasons
from domain import wording
from domain.gangs import sentences
from extender.framework import views
from extender.framework.eviction import victims
from extender.gangs.preemption import search
from extender.preemption import planner
from extender.state import records
from kube.controllers import recorder
from process.runtime import metrics

_BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Why:
    """The gang group for which pods are preempted."""

    group: str
    lead: records.PodRecord
    """The member that carries the record."""
    priority: int
    refusal: str
    """Why the gang has no room."""


def sentence(why: Why, found: search.Victims, namespace: str = "") -> str:
    """Say who leaves for a gang; pods of other namespaces than a given one are not named."""
    groups = (
        (f"evicts {len(found.found.victims)} of lower priority", found.found.victims),
        ("waits for pods that are leaving", found.found.leaving),
    )
    said = "; ".join(f"{what}: {planner.named(held, namespace)}" for what, held in groups if held)
    return (
        f"gang group {why.group} (priority {why.priority}) is refused: {why.refusal}. Preemption "
        f"for {wording.count(len(found.placements), 'member', 'members')} on "
        f"{wording.count(len(found.nodes), 'node', 'nodes')} {said}"
    )


def document(found: search.Victims | search.NoVictims) -> dict[str, Any]:
    """Return the victims of a preemption, as a document."""
    if isinstance(found, search.NoVictims):
        return {"victims": [], "sentence": found.reason}
    return {
        "victims": [claim.pod.key for claim in found.found.victims],
        "priorities": [victims.priority_of(claim) for claim in found.found.victims],
        "leaving": [claim.pod.key for claim in found.found.leaving],
        "nodes": sorted(found.nodes),
    }


class Notices:
    """Reports preemptions for gangs."""

    def __init__(self, registry: metrics.Registry, events: recorder.EventRecorder) -> None:
        self._events = events
        self._results = registry.counter(
            "koord_extender_gang_preemptions_total",
            "Preemptions for gangs by what became of them.",
            ("result",),
        )
        self._victims = registry.counter(
            "koord_extender_gang_preemption_victims_total",
            "Pods evicted for gangs, by what became of the eviction.",
            ("result",),
        )
        self._seconds = registry.histogram(
            "koord_extender_gang_preemption_seconds",
            "Time from the first eviction for a gang until it had a plan.",
            (),
            _BUCKETS,
        )

    def count(self, result: str) -> None:
        """Count how a preemption ended."""
        self._results.labels(result).inc()

    def placed(self, seconds: float) -> None:
        """Take in that a gang that preempted has a plan."""
        self.count("placed")
        self._seconds.observe(max(0.0, seconds))

    def planned(self, why: Why, found: search.Victims, *, enforced: bool) -> None:
        """Put the arithmetic on a member of the gang that preempts."""
        reason: event_reasons.Reason = "Preempting" if enforced else "WouldPreempt"
        self._say(why.lead, "Normal", reason, sentence(why, found, why.lead.namespace))

    def evicted(self, why: Why, victim: views.Claim, result: str) -> None:
        """Record an event on a victim that says for which pod it was evicted, and why."""
        self._victims.labels(result).inc()
        if result != "evicted":
            return
        preemptor = planner.shown(why.lead.key, why.lead.uid, victim.pod.namespace)
        note = (
            f"evicted for the gang of {preemptor}, of priority {why.priority}, above its own "
            f"{victims.priority_of(victim)}, which has no room: {why.refusal}"
        )
        self._say(victim.pod, "Warning", "Preempted", note)

    def failed(self, pod: records.PodRecord, why: str) -> None:
        """Put on a member why the preemption for its gang came to nothing."""
        self.count("failed")
        self._say(pod, "Warning", "PreemptionFailed", why)

    def _say(
        self, pod: records.PodRecord, kind: recorder.Kind, reason: event_reasons.Reason, note: str
    ) -> None:
        about = recorder.Regarding("v1", "Pod", pod.name, pod.namespace, pod.uid)
        self._events.event(about, kind, reason, note, "Preempt")


def said(found: search.Victims) -> sentences.Said:
    """Return what members say while pods leave for them."""
    return sentences.preempting(len(found.found.victims), len(found.found.leaving))
