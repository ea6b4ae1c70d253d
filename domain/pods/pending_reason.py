"""Why a pod has no node yet, as its gates and conditions say. Pure."""

import re
from typing import Final, NamedTuple

from api import names
from api.kubernetes import core

_OUR_CONDITIONS: Final = {
    names.GATE_QUOTA: names.CONDITION_QUOTA,
    names.GATE_GANG: names.CONDITION_GANG,
}
_COUNTED: Final = re.compile(r"(\d+) ([^,]+)")
_PART: Final = re.compile(r"\bmade by pod .*|\b\d+\b")
_LONGEST: Final = 4096
"""Characters of a message that are read: whoever may write the status of a pod may write any."""
UNTRIED: Final = "not tried yet"


class Reason(NamedTuple):
    """Why a pod waits."""

    kind: str
    """In a few words that many pods share, for counting."""
    text: str
    """As it is shown for one pod."""


def of(pod: core.Pod) -> Reason:
    """Return why a pod without a node waits."""
    condition = pod.status.condition("PodScheduled")
    if pod.spec.scheduling_gates:
        return _gated(pod)
    if condition is not None and condition.message:
        # What follows is said about preemption, which is seldom the question here.
        text = (
            condition.message[:_LONGEST]
            .partition(" preemption: ")[0]
            .removesuffix(" no new claims to deallocate,")
        )
        # One that was let in and found no node may find its quota used up meanwhile.
        short = _said(pod, names.GATE_QUOTA)
        return Reason(_most_frequent(text), f"{text} {short}" if short else text)
    return Reason(UNTRIED, f"scheduler {pod.spec.scheduler_name} has not tried it yet")


def _gated(pod: core.Pod) -> Reason:
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    text = "waits behind " + ", ".join(gates)
    said = [_said(pod, gate) for gate in gates]
    messages = [message for message in said if message]
    return Reason(
        f"waits behind {gates[0]}", f"{text}: {'; '.join(messages)}" if messages else text
    )


def _said(pod: core.Pod, gate: str) -> str:
    """Return what our condition says about a gate of ours."""
    condition = pod.status.condition(_OUR_CONDITIONS.get(gate, ""))
    told = condition is not None and condition.status == "False"
    return condition.message[:_LONGEST] if condition is not None and told else ""


def _most_frequent(message: str) -> str:
    """Return the refusal that most nodes share, as kube-scheduler counts them."""
    _, there, refusals = message.partition(" nodes are available: ")
    if not there:
        return _PART.sub("", message).strip().rstrip(".")[:80]
    counted = _COUNTED.findall(refusals.partition(". ")[0])
    if not counted:
        return refusals[:80]
    _, text = max(counted, key=lambda one: int(one[0][:9]))
    return str(text).strip().rstrip(".")[:80]
