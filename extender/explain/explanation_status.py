"""ScheduleExplanations: which one is about which pod, and what is written into it."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from api import names, resources
from api.koordinator import explanation
from api.wire import base, durations
from extender.explain import refusals

MAKER = "koord-extender"
"""Marks the objects that were made here, which also end with their pod."""


class Question(msgspec.Struct, frozen=True, gc=False):
    """One ScheduleExplanation, as far as answering it goes."""

    key: str
    """namespace/name of the object itself."""
    pod: str
    """namespace/name of what is asked about."""
    made_here: bool
    schedulable: bool
    message: str = ""
    """What it was answered."""

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


FOREIGN = (
    "questionObjectKey names no pod of this namespace: write NAMESPACE/NAME of one; pods of other "
    "namespaces are not explained here"
)


def question(raw: Mapping[str, Any]) -> Question | None:
    """Project an object; one that cannot be read asks nothing."""
    try:
        read = explanation.read_schedule_explanation(raw)
    except base.ReadError:
        return None
    metadata = raw.get("metadata") or {}
    return Question(
        key=f"{metadata.get('namespace', '')}/{metadata.get('name', '')}",
        pod=read.spec.question_object_key,
        made_here=(metadata.get("labels") or {}).get(names.LABEL_CREATED_BY) == MAKER,
        schedulable=read.status.schedulable,
        message=read.status.failed_message,
    )


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


def declined(now: float) -> dict[str, Any]:
    """Return the status of a question that is not answered, and why."""
    return _status(now, schedulable=False, failedMessage=FOREIGN, detailedExplanation=[])


def _status(now: float, **fields: Any) -> dict[str, Any]:
    moment = durations.moment(math.floor(now))
    return {"status": {**fields, "schedulableAfterPreemption": False, "lastUpdateTime": moment}}
