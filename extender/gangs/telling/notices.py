"""Events on the members of gangs, and metrics of gangs."""

from collections.abc import Sized
from typing import Final

from api.koordinator import event_reasons
from extender.state import records
from kube.controllers import recorder
from process.runtime import metrics

_PLAN_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)


class Notices:
    """Tells of plans."""

    def __init__(self, registry: metrics.Registry, events: recorder.EventRecorder) -> None:
        self._events, self._registry = events, registry
        self._results = registry.counter(
            "koord_extender_gang_plans_total", "Plans of gang groups by what became of them.",
            ("result",),
        )  # fmt: skip
        self._planning = registry.histogram(
            "koord_extender_gang_plan_seconds", "Time to plan one gang group.", (), _PLAN_BUCKETS
        )
        self._seconds = registry.histogram(
            "koord_extender_gang_bound_seconds",
            "Time from when a gang group was complete until all its planned members were bound.",
            (),
            _BUCKETS,
        )
        self._renominated = registry.counter(
            "koord_extender_gang_renominations_total",
            "Members nominated to their planned nodes anew, after kube-scheduler's attempt failed.",
        )
        self._moved = registry.counter(
            "koord_extender_gang_moves_total",
            "Members whose plan placed them anew, at nodes at which kube-scheduler looked, by whose"
            " place they took: exchanged with another member, or free.",
            ("place",),
        )
        self._evicted = registry.counter(
            "koord_extender_gang_evictions_total",
            "Members evicted because an interruption left them bound without their gang.",
            ("result",),
            known=(("evicted",), ("refused",)),
        )

    def watch(self, waiting: Sized, in_force: Sized, behind: Sized) -> None:
        """Show how many groups and members wait, and how many plans are in force."""
        self._registry.gauge(
            "koord_extender_gang_members_waiting",
            "Members of gangs that have a place and that kube-scheduler has not placed yet.",
        ).set_function(lambda: float(len(behind)))
        self._registry.gauge(
            "koord_extender_gang_groups_waiting", "Complete gang groups that wait for a plan."
        ).set_function(lambda: float(len(waiting)))
        self._registry.gauge(
            "koord_extender_gang_plans_in_force", "Gang groups whose members are being placed."
        ).set_function(lambda: float(len(in_force)))

    def count(self, result: str) -> None:
        """Count the outcome of a plan."""
        self._results.labels(result).inc()

    def planned(self, seconds: float) -> None:
        """Take in how long planning took."""
        self._planning.observe(max(0.0, seconds))

    def bound(self, seconds: float) -> None:
        """Take in that every member of a plan is bound."""
        self.count("bound")
        self._seconds.observe(max(0.0, seconds))

    def renominated(self, members: int) -> None:
        """Count members that were nominated again."""
        self._renominated.inc(members)

    def moved(self, members: int) -> None:
        """Take in that a member has got a free place, or two have exchanged theirs."""
        self._moved.labels("free" if members == 1 else "exchanged").inc(members)

    def refused(self, pod: records.PodRecord, sentence: str) -> None:
        """Put on a member why its gang has no plan."""
        self.count("refused")
        self._say(pod, "Warning", "GangUnschedulable", sentence)

    def failed(self, pod: records.PodRecord, sentence: str) -> None:
        """Put on a member why the plan of its gang was given up."""
        self.count("failed")
        self._say(pod, "Warning", "GangPlanFailed", sentence)

    def evicted(self, pod: records.PodRecord, group: str, failure: str) -> None:
        """Put on a member that it is evicted because its gang could not be completed."""
        self._evicted.labels("refused" if failure else "evicted").inc()
        note = (
            f"bound although gang group {group} could not be completed after an interruption: "
            f"{failure or 'evicted, so that the gang starts as a whole'}"
        )
        self._say(pod, "Warning", "PartialGang", note)

    def _say(
        self, pod: records.PodRecord, kind: recorder.Kind, reason: event_reasons.Reason, note: str
    ) -> None:
        about = recorder.Regarding("v1", "Pod", pod.name, pod.namespace, pod.uid)
        self._events.event(about, kind, reason, note, "Scheduling")
