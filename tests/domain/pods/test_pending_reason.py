"""Why a pod has no node, for one pod and for counting many."""

import pytest

from api import names
from api.kubernetes import core
from domain.pods import pending_reason

COUNTED = (
    "0/4 nodes are available: 1 node(s) had untolerated taint(s), "
    "3 Insufficient kubernetes.io/batch-cpu. preemption: 0/4 nodes are available: 4 No victims."
)


def waiting(*, gates=(), conditions=(), scheduler="s"):
    spec = core.PodSpec(
        scheduler_name=scheduler,
        scheduling_gates=tuple(core.SchedulingGate(name=gate) for gate in gates),
    )
    return core.Pod(spec=spec, status=core.PodStatus(conditions=tuple(conditions)))


def condition(message, kind="PodScheduled", status="False"):
    return core.Condition(type=kind, status=status, message=message)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(waiting(), ("not tried yet", "scheduler s has not tried it yet"), id="new"),
        pytest.param(
            waiting(conditions=[condition(COUNTED)]),
            ("Insufficient kubernetes.io/batch-cpu", COUNTED.partition(" preemption")[0]),
            id="most-frequent-refusal",
        ),
        pytest.param(
            waiting(conditions=[condition("binding rejected by 17 of them")]),
            ("binding rejected by  of them", "binding rejected by 17 of them"),
            id="other-message",
        ),
        pytest.param(
            waiting(gates=["example.com/g"], conditions=[condition(COUNTED)]),
            ("waits behind example.com/g", "waits behind example.com/g"),
            id="gate-of-others",
        ),
        pytest.param(
            waiting(
                gates=[names.GATE_QUOTA, "b"],
                conditions=[condition("quota a lacks 2 cores", names.CONDITION_QUOTA)],
            ),
            (f"waits behind {names.GATE_QUOTA}",
             f"waits behind {names.GATE_QUOTA}, b: quota a lacks 2 cores"),
            id="gate-with-condition",
        ),
        pytest.param(
            waiting(
                gates=[names.GATE_GANG],
                conditions=[condition("was ready", names.CONDITION_GANG, "True")],
            ),
            (f"waits behind {names.GATE_GANG}",) * 2,
            id="condition-that-is-over",
        ),
        pytest.param(
            waiting(
                conditions=[condition("no cpu."), condition("no quota", names.CONDITION_QUOTA)]
            ),
            ("no cpu", "no cpu. no quota"),
            id="no-room-on-nodes-nor-in-the-quota",
        ),
    ],
)  # fmt: skip
def test_reasons(pod, expected) -> None:
    assert pending_reason.of(pod) == expected


@pytest.mark.parametrize("letter", ["1", "1 ", "a,", " nodes are available: 1"])
def test_endless_messages_are_read_in_no_time(letter) -> None:
    message = "0/4 nodes are available: " + letter * 500_000
    found = pending_reason.of(waiting(conditions=[condition(message)]))
    assert len(found.kind) <= 80
    assert len(found.text) <= 4096
