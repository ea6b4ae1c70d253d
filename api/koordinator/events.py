"""Kubernetes events that the processes post: by whom, on what, and what they mean."""

from collections.abc import Mapping
from typing import Final

from api.koordinator import event_reasons, manager_events

_OTHERS: Final[Mapping[event_reasons.Reason, event_reasons.Event]] = {
    "AllocationsOverlap": event_reasons.Event(
        "extender",
        "Pod",
        "Two bound pods hold the same CPUs or devices; the younger one is evicted.",
    ),
    "CPUBindingRefused": event_reasons.Event(
        "agent",
        "Pod",
        "The pod claims CPUs of its own that it may not have; the agent ignores the claim.",
    ),
    "CPUDrift": event_reasons.Event(
        "agent", "Pod, Node", "A cgroup uses CPUs that belong to another pod alone."
    ),
    "Complete": event_reasons.Event("descheduler", "PodMigrationJob", "The pod was moved."),
    "Descheduled": event_reasons.Event(
        "descheduler", "Pod, its owner", "The pod is moved to another node."
    ),
    "Explained": event_reasons.Event(
        "extender", "ScheduleExplanation", "The status says why the pod waits."
    ),
    "FailedCreateReservation": event_reasons.Event(
        "descheduler", "PodMigrationJob", "No Reservation for the new pod could be created."
    ),
    "FailedEvict": event_reasons.Event(
        "descheduler", "PodMigrationJob", "The Eviction API refused to evict the pod."
    ),
    "ForbiddenMigratePod": event_reasons.Event(
        "descheduler", "PodMigrationJob", "The pod must not be moved; the message says why."
    ),
    "ForeignWriter": event_reasons.Event(
        "agent",
        "Node",
        "Another program keeps changing a cgroup value; the agent no longer restores it.",
    ),
    "GangPlanFailed": event_reasons.Event(
        "extender", "Pod", "The plan of the gang was given up; the extender plans it again."
    ),
    "GangUnschedulable": event_reasons.Event(
        "extender", "Pod", "There are no places for the whole gang."
    ),
    "GroupFailed": event_reasons.Event(
        "descheduler",
        "PodMigrationJob",
        "Another pod that had to move together with this one cannot move.",
    ),
    "Interference": event_reasons.Event("agent", "Pod", "Neighbours slow the pod down."),
    "InvalidPodRef": event_reasons.Event(
        "descheduler", "PodMigrationJob", "The reference to the pod lacks its namespace or name."
    ),
    "Migrating": event_reasons.Event("descheduler", "PodMigrationJob", "The job has begun."),
    "MissingPod": event_reasons.Event("descheduler", "PodMigrationJob", "The pod is gone."),
    "MissingReservation": event_reasons.Event(
        "descheduler", "PodMigrationJob", "The Reservation of the job is gone."
    ),
    "MoveDidNotPay": event_reasons.Event(
        "descheduler", "PodMigrationJob, Pod", "The move brought less than was expected."
    ),
    "MoveOutcomeUnknown": event_reasons.Event(
        "descheduler", "PodMigrationJob, Pod", "What the move brought cannot be told."
    ),
    "MovePaid": event_reasons.Event(
        "descheduler", "PodMigrationJob, Pod", "The move brought what was expected."
    ),
    "NodesRefused": event_reasons.Event(
        "extender", "Pod", "The extender refuses nodes; the message groups them by reason."
    ),
    "NodesWouldBeRefused": event_reasons.Event(
        "extender", "Pod", "In observe mode: the extender would refuse these nodes."
    ),
    "PartialGang": event_reasons.Event(
        "extender", "Pod", "A gang stayed incomplete after an interruption; the pod is evicted."
    ),
    "Pod Level Resctrl": event_reasons.Event(
        "agent", "Pod", "The pod got a share of the last-level cache of its own."
    ),
    "PodNotJudged": event_reasons.Event(
        "extender",
        "ScheduleExplanation",
        "No node was refused to the pod, so there is nothing to explain.",
    ),
    "PodPlaced": event_reasons.Event("extender", "ScheduleExplanation", "The pod has a node."),
    "PodUnknown": event_reasons.Event(
        "extender", "ScheduleExplanation", "There is no such pod, or it has ended."
    ),
    "Preempted": event_reasons.Event(
        "extender", "Pod", "The pod is evicted for a pod of higher priority."
    ),
    "Preempting": event_reasons.Event(
        "extender", "Pod", "Pods of lower priority are evicted for this pod."
    ),
    "PreemptionFailed": event_reasons.Event(
        "extender", "Pod", "A preemption for this pod came to nothing."
    ),
    "ProfileHalted": event_reasons.Event(
        "descheduler",
        "ConfigMap",
        "Moves of a profile do not pay; it only says what it would move.",
    ),
    "QuestionRefused": event_reasons.Event(
        "extender", "ScheduleExplanation", "The question names no pod of its own namespace."
    ),
    "ReservationExpired": event_reasons.Event(
        "descheduler",
        "PodMigrationJob",
        "The Reservation of the job expired before the pod was evicted.",
    ),
    "Scheduled": event_reasons.Event(
        "extender", "Reservation", "The Reservation has a node and holds its resources there."
    ),
    "SchedulerConfigRefused": event_reasons.Event(
        "extender",
        "ConfigMap",
        "The plug-in arguments cannot be used; the last good ones stay in force.",
    ),
    "Timeout": event_reasons.Event(
        "descheduler", "PodMigrationJob", "The job did not end in time."
    ),
    "Unattended": event_reasons.Event(
        "agent",
        "Node",
        "The agent before this one ended without handing over; nothing was restored meanwhile.",
    ),
    "Unschedulable": event_reasons.Event(
        "descheduler", "PodMigrationJob", "No node has room for the Reservation of the new pod."
    ),
    "WouldPreempt": event_reasons.Event(
        "extender", "Pod", "In observe mode: the extender would evict pods of lower priority."
    ),
    "evictPodFail": event_reasons.Event("agent", "Pod", "The agent could not evict the pod."),
    "evictPodSuccess": event_reasons.Event(
        "agent", "Pod", "The agent evicted the pod to protect the node."
    ),
}
_MANAGER: Final[Mapping[event_reasons.Reason, event_reasons.Event]] = {
    reason: event_reasons.Event("manager", *told)
    for reason, told in manager_events.MEANINGS.items()
}
EVENTS: Final[Mapping[event_reasons.Reason, event_reasons.Event]] = dict(
    sorted({**_OTHERS, **_MANAGER}.items())
)
