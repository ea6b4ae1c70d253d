"""A move has paid if things would be worse with the pod on its old node."""

import dataclasses

import msgspec
import pytest

from descheduler.framework import protocols
from descheduler.gain.options import Options
from descheduler.model import podinfo
from descheduler.receipts import receipt, settlement
from tests.descheduler import builders
from tests.descheduler.receipts import moves

NEW = moves.pod("web-2", "b", ready=True)
V = receipt.Verdict
EMPTY, COMPLY = protocols.Purpose.EMPTY, protocols.Purpose.COMPLY


def later(loads=None, pods=(NEW,), *, now=moves.LATER, **more):
    return moves.world(loads or {"a": 8, "b": 4}, pods, now=now, **more)


def test_a_move_that_has_paid_says_by_how_much():
    one = moves.expected()
    found = moves.outcome(one, later())
    assert found == receipt.Outcome(
        V.PAID, moves.LATER, gain=10.0, pod="default/web-2", node="b",
        now=receipt.Ends({"cpu": 80.0}, {"cpu": 40.0}),
    )  # fmt: skip
    told = settlement.settled(one, found)
    assert told.sentence == (
        "paid: a cpu 90 % → 80 %; b cpu 30 % → 40 %; 10.0 points gained of 10.0 that were expected"
    )
    assert not told.is_open


def test_load_that_changes_for_all_nodes_changes_no_verdict():
    """Both nodes are hotter than before the move, and would be further apart without it."""
    found = moves.outcome(moves.expected(), later({"a": 9.5, "b": 8}))
    assert (found.verdict, found.gain) == (V.PAID, 5.0)
    found = moves.outcome(moves.expected(), later({"a": 3, "b": 9}))
    assert (found.verdict, found.gain) == (V.NOT_PAID, -10.0)
    assert found.reason == "loads would be closer if it had stayed"


def test_a_receipt_waits_until_the_new_pod_has_settled_and_is_measured():
    one = moves.expected()
    assert moves.outcome(one, later(), phase="Running") is None
    assert moves.outcome(one, later(now=moves.LATER - 1)) is None
    old = later(measured=moves.ENDED + 100)
    assert moves.outcome(one, old) is None
    patience = moves.ENDED + 3 * moves.SETTLE
    found = moves.outcome(one, later(now=patience, measured=moves.ENDED + 100))
    assert (found.verdict, found.reason) == (
        V.UNKNOWN,
        "there is no NodeMetric that is new enough",
    )


@pytest.mark.parametrize(
    ("job", "pods", "verdict", "reason"),
    [
        pytest.param(
            {"phase": "Failed", "evicted": False, "reason": "Unschedulable"},
            (),
            V.NOT_MOVED,
            "the pod stayed: Unschedulable",
            id="it-stayed",
        ),
        pytest.param(
            {"phase": "Failed", "new": ""},
            (),
            V.UNKNOWN,
            "no pod is known to replace it",
            id="evicted-and-not-replaced",
        ),
        pytest.param({}, (), V.UNKNOWN, "no pod is known to replace it", id="gone"),
        pytest.param(
            {},
            (moves.pod("web-2", "b", phase="Succeeded"),),
            V.UNKNOWN,
            "the pod that replaced it has ended",
            id="ended",
        ),
        pytest.param(
            {},
            (moves.pod("web-2", "a"),),
            V.NOT_PAID,
            "it is back on the node that it left",
            id="back",
        ),
        pytest.param(
            {},
            (moves.pod("web-2", "b", containers=(podinfo.Container("c", restarts=2),)),),
            V.NOT_PAID,
            "the new pod has restarted 2 times",
            id="restarts",
        ),
    ],
)
def test_what_may_become_of_a_move(job, pods, verdict, reason):
    found = moves.outcome(moves.expected(), later(pods=pods), **job)
    assert (found.verdict, found.reason) == (verdict, reason)


def test_a_pod_that_is_slowed_down_where_it_is_now_was_moved_in_vain():
    slow = {"cpu-some": 31.0}
    found = moves.outcome(moves.expected(), later(slowed=slow))
    assert (found.verdict, found.quality.slowed) == (V.NOT_PAID, slow)
    assert found.reason == "the new pod is slowed down by its neighbours: cpu-some 31"
    before = moves.world({"a": 9, "b": 3}, [moves.pod()], slowed={"cpu-some": 40.0})
    assert moves.outcome(moves.expected(before), later(slowed=slow)).verdict is V.PAID


def test_throttling_is_told_and_is_no_verdict():
    """Its own limit throttles a pod, on whatever node it is."""
    one = moves.expected()
    quality = msgspec.structs.replace(one.quality, throttled=2.0)
    one = msgspec.structs.replace(one, quality=quality)
    found = moves.outcome(one, later(throttled=40.0))
    assert (found.verdict, found.quality.throttled) == (V.PAID, 40.0)
    assert settlement.settled(one, found).sentence.endswith("throttled in 2 % → 40 % of periods")
    unmeasured = moves.outcome(one, later())
    assert "throttled" not in settlement.settled(one, unmeasured).sentence


def test_another_node_than_the_planned_one_is_told_with_its_load():
    one = moves.expected()
    elsewhere = moves.pod("web-2", "c")
    found = moves.outcome(one, later({"a": 8, "b": 3, "c": 5}, (elsewhere,)))
    told = settlement.settled(one, found).sentence
    assert told == (
        "paid: a cpu 90 % → 80 %; c cpu 50 %; 8.0 points gained of 10.0 that were expected"
    )


def test_a_move_that_did_not_happen_is_told_without_figures():
    one = moves.expected()
    found = moves.outcome(one, later(pods=()), phase="Failed", evicted=False, message="full")
    assert settlement.settled(one, found).sentence == "not moved (the pod stayed: full)"


@pytest.mark.parametrize(("ready", "verdict"), [(True, V.PAID), (False, V.NOT_PAID)])
def test_what_broke_a_rule_has_to_run_elsewhere(ready, verdict):
    one = moves.expected(purpose=COMPLY)
    found = moves.outcome(one, later(pods=(moves.pod("web-2", "b", ready=ready),)))
    assert (found.verdict, found.gain) == (verdict, None)


def test_a_node_was_emptied_once_nothing_is_left_on_it():
    one = moves.expected(purpose=EMPTY)
    assert moves.outcome(one, later()).verdict is V.PAID
    daemon = moves.pod("d", "a", controller="DaemonSet/d")
    assert moves.outcome(one, later(pods=(NEW, daemon))).verdict is V.PAID
    others = (NEW, moves.pod("o", "a"))
    assert moves.outcome(one, later(pods=others)) is None
    patience = moves.ENDED + 3 * moves.SETTLE
    found = moves.outcome(one, later(pods=others, now=patience))
    assert (found.verdict, found.reason) == (V.NOT_PAID, "1 pod is on its old node still")
    gone = dataclasses.replace(later(pods=others), nodes={})
    assert moves.outcome(one, gone).verdict is V.PAID


@pytest.mark.parametrize(
    ("other", "verdict"),
    [
        pytest.param({"cpu": "1", "memory": "38Gi"}, V.PAID, id="balanced-beside-it"),
        pytest.param({"cpu": "3", "memory": "1Gi"}, V.NOT_PAID, id="more-of-the-same"),
    ],
)
def test_fragments_are_healed_if_they_would_be_larger_with_the_pod_back(other, verdict):
    one = moves.expected(purpose=protocols.Purpose.DEFRAGMENT)
    large = builders.pod("web-2", "b", cpu="6", memory="1Gi", ready=True)
    beside = builders.pod("o", "b", **other)
    before = builders.pod("q", "a", cpu="1", memory="1Gi")
    found = moves.outcome(one, later(pods=(large, beside, before)), options=Options())
    assert found.verdict is verdict
    assert (found.gain > 0) is (verdict is V.PAID)


def test_a_node_that_has_gone_tells_nothing_of_fragments():
    one = moves.expected(purpose=protocols.Purpose.DEFRAGMENT)
    seen = later()
    gone = dataclasses.replace(seen, nodes={"b": seen.nodes["b"]})
    assert moves.outcome(one, gone).verdict is V.UNKNOWN
