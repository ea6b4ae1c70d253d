"""ScheduleExplanations: which one is about which pod, and what is written into it."""

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api import names, resources
from api.koordinator import event_reasons, explanation
from api.wire import base, durations
from domain import conditions, wording
from extender.explain import refusals

CURRENT: Final = "Current"
"""Whether the status says why the pod waits, or where it is."""
MAKER = "koord-extender"
"""Marks the objects that were made here, which also end with their pod."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a pod was said to be."""

    uid: str
    """That of the pod."""
    node: str


class Question(msgspec.Struct, frozen=True, gc=False):
    """The fields of one ScheduleExplanation on which its status depends."""

    key: str
    """namespace/name of the object itself."""
    pod: str
    """namespace/name of what is asked about."""
    made_here: bool
    place: Place | None = None
    """What it was answered of a pod that has one."""
    message: str = ""
    """What it was answered."""
    uid: str = ""
    generation: int | None = None
    conditions: Any = None
    """``status.conditions`` as they stand."""

    @property
    def said(self) -> str:
        """Return the reason why it is current or not; empty while nothing was said."""
        for one in self.conditions if isinstance(self.conditions, list | tuple) else ():
            if isinstance(one, Mapping) and one.get("type") == CURRENT:
                return str(one.get("reason"))
        return ""

    @property
    def namespace(self) -> str:
        """Return the namespace of the object."""
        return self.key.partition("/")[0]

    @property
    def foreign(self) -> bool:
        """Whether it asks about a pod of another namespace, which its author may not see."""
        namespace, _, name = self.pod.partition("/")
        return not name or namespace != self.namespace

    @property
    def name(self) -> str:
        """Return the name of the object."""
        return self.key.partition("/")[2]


Answer = conditions.Condition[event_reasons.Reason]
"""Whether the answer is current, which an event tells as well."""

FOREIGN = (
    "questionObjectKey names no pod of this namespace: write NAMESPACE/NAME of one; pods of other "
    "namespaces are not explained here"
)


def question(raw: Mapping[str, Any]) -> Question | None:
    """Project an object; one that cannot be read asks nothing."""
    status = base.section(raw, "status")
    said = status.get("conditions")
    try:
        # What somebody made of the conditions must not keep a question from being answered.
        read = explanation.read_schedule_explanation(
            {**raw, "status": {**status, "conditions": []}}
        )
    except base.ReadError:
        return None
    metadata = raw.get("metadata") or {}
    return Question(
        key=f"{metadata.get('namespace', '')}/{metadata.get('name', '')}",
        pod=read.spec.question_object_key,
        made_here=(metadata.get("labels") or {}).get(names.LABEL_CREATED_BY) == MAKER,
        place=_place(read.status) if read.status.schedulable else None,
        message=read.status.failed_message,
        uid=str(metadata.get("uid", "")),
        generation=metadata.get("generation"),
        conditions=_flat(said),
    )


def _place(status: explanation.Status) -> Place:
    """Read what `placed` writes; what is written otherwise is the place of no pod."""
    attempts = [one.schedule_explanation for one in status.detailed_explanation]
    places = [place for one in attempts if one for place in one.feasible_scheduling_result]
    return Place(places[0].uid, places[0].node_name) if places else Place("", "")


def _flat(conditions: Any) -> Any:
    """Leave out conditions that hold lists or objects: deeply nested ones cannot be written."""
    if not isinstance(conditions, list):
        return conditions
    return [
        one
        for one in conditions
        if isinstance(one, Mapping) and not any(isinstance(v, dict | list) for v in one.values())
    ]


def asked(pod: str, ttl_seconds: float) -> dict[str, Any]:
    """Return the object that asks about a pod on behalf of later readers."""
    namespace, _, name = pod.partition("/")
    return {
        "apiVersion": resources.SCHEDULE_EXPLANATIONS.api_version,
        "kind": resources.SCHEDULE_EXPLANATIONS.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {names.LABEL_CREATED_BY: MAKER},
        },
        "spec": {"questionObjectKey": pod, "ttl": durations.text(ttl_seconds)},
    }


def refused(account: refusals.Account, now: float) -> dict[str, Any]:
    """Return the status of a pod that no node takes; lists replace what was there."""
    details = [
        {
            "failedPlugin": group.plugin,
            "reason": group.reason,
            "preemptMightHelp": group.preemption_helps,
            "failedNodes": list(group.nodes),
        }
        for group in sorted(account.groups, key=_order)
    ]
    attempt = {"schedulable": False, "failedMessage": "", "nodeFailedDetails": details}
    domain = {"topologyDomain": "", "schedulable": False, "failedMessage": account.sentence()}
    return _status(
        now,
        schedulable=False,
        failedMessage=account.sentence(),
        detailedExplanation=[{**domain, "scheduleExplanation": attempt}],
    )


def _order(group: refusals.Group) -> tuple[str, str, bool]:
    return group.plugin, group.reason, not group.preemption_helps


def placed(pod: str, uid: str, node: str, now: float) -> dict[str, Any]:
    """Return the status of a pod that found its place."""
    namespace, _, name = pod.partition("/")
    result = {"namespace": namespace, "name": name, "uid": uid, "nodeName": node}
    attempt = {"schedulable": True, "failedMessage": "", "feasibleSchedulingResult": [result]}
    domain = {"topologyDomain": "", "schedulable": True, "failedMessage": ""}
    return _status(
        now,
        schedulable=True,
        failedMessage="",
        detailedExplanation=[{**domain, "scheduleExplanation": attempt}],
    )


def displaced(now: float) -> dict[str, Any]:
    """Return the status of a pod that was placed and is not any more."""
    return _status(now, schedulable=False, failedMessage="", detailedExplanation=[])


def declined(now: float) -> dict[str, Any]:
    """Return the status of a question that is not answered, and why."""
    return _status(now, schedulable=False, failedMessage=FOREIGN, detailedExplanation=[])


def answered(
    question: Question, body: Mapping[str, Any], answer: Answer, now: float
) -> dict[str, Any]:
    """Return a status together with whether it is current."""
    said = conditions.merged(
        question.conditions, [answer], now, types=(CURRENT,), generation=question.generation
    )
    return {"status": {**body.get("status", {}), **({} if said is None else {"conditions": said})}}


def explained(account: refusals.Account) -> Answer:
    """Return that it is said why a pod waits; the figures stand in the status."""
    reasons = wording.count(len(account.groups), "reason is", "reasons are")
    return Answer(CURRENT, True, "Explained", f"{reasons} given")


def located(node: str) -> Answer:
    """Return that a pod found its place."""
    return Answer(CURRENT, True, "PodPlaced", f"the pod is placed on {node}")


REFUSED: Final[Answer] = Answer(CURRENT, False, "QuestionRefused", FOREIGN)


def unknown(pod: str) -> Answer:
    """Return that there is no pod that waits or runs; why it waited before stays."""
    return Answer(CURRENT, False, "PodUnknown", f"there is no pod {pod} now, or it has ended")


def unjudged(pod: str) -> Answer:
    """Return that nothing can be said of a pod that waits."""
    note = (
        f"no node was refused to pod {pod}: kube-scheduler has not asked about it yet, or refuses "
        "it by itself; its condition PodScheduled says more"
    )
    return Answer(CURRENT, False, "PodNotJudged", note)


def _status(now: float, **fields: Any) -> dict[str, Any]:
    moment = durations.moment(math.floor(now))
    return {"status": {**fields, "schedulableAfterPreemption": False, "lastUpdateTime": moment}}
