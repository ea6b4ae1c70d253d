"""The receipt of a move says what was measured before it and what is expected of it."""

import pytest

from api import names
from descheduler.framework import protocols
from descheduler.model import podinfo
from descheduler.receipts import expectation, receipt
from tests.descheduler import builders
from tests.descheduler.receipts import moves


def test_loads_of_both_nodes_before_and_after():
    found = moves.expected()
    assert found.before == receipt.Ends({"cpu": 90.0}, {"cpu": 30.0})
    assert found.expected == receipt.Ends({"cpu": 80.0}, {"cpu": 40.0})
    assert (found.gain, found.cost, found.used) == (10.0, 2.0, {"cpu": 1000})
    assert (found.pod, found.source, found.target) == ("default/web-1", "a", "b")
    assert found.sentence == (
        "expected: a cpu 90 % → 80 %; b cpu 30 % → 40 %; 10.0 points for a cost of 2.0"
    )


def test_moves_of_a_round_count_for_those_after_them():
    first, second = moves.pod("web-1"), moves.pod("web-2")
    seen = moves.world({"a": 9, "b": 3}, [first, second])
    both = [moves.move(first), moves.move(second)]
    found = expectation.receipts(both, seen, moves.loads(seen))
    assert found["uid-web-2"].before.source == found["uid-web-1"].expected.source == {"cpu": 80.0}
    assert found["uid-web-2"].expected.target == {"cpu": 50.0}


def test_without_a_target_only_the_source_is_told():
    found = moves.expected(target="")
    assert found.sentence == "expected: a cpu 90 % → 80 %; 10.0 points for a cost of 2.0"
    assert found.target == "" and found.expected.target == {}  # noqa: PT018


def test_nodes_that_are_not_measured_have_no_figures():
    seen = builders.picture_of([builders.node("a")], [moves.pod()])
    found = moves.expected(seen, purpose=protocols.Purpose.COMPLY, gain=0.0)
    assert found.sentence == "expected: a; b; 0.0 points for a cost of 2.0"
    assert found.used == {}


def test_how_a_pod_fares_is_what_its_status_and_its_agent_say():
    containers = (podinfo.Container("a", restarts=2), podinfo.Container("b", restarts=1))
    slow = moves.pod(containers=containers)
    seen = moves.world({"a": 9, "b": 3}, [slow], slowed={"cpu-some": 30.0})
    assert expectation.quality(slow, seen) == receipt.Quality(3, {"cpu-some": 30.0})
    gone = moves.pod("web-9", "z")
    assert expectation.quality(gone, seen) == receipt.Quality()


def test_a_receipt_is_read_back_as_it_was_written():
    one = moves.expected()
    outcome = receipt.Outcome(receipt.Verdict.PAID, 1.5, gain=9.75, now=one.expected)
    for found in (one, receipt.Receipt("s", "p", "l", "Balance", "d/p", "a", 1.0, outcome=outcome)):
        written = {names.ANNOTATION_MIGRATION_RECEIPT: receipt.text(found)}
        assert receipt.read(builders.job(annotations=written)) == found
    assert len(receipt.text(one)) < 700


@pytest.mark.parametrize(
    "written",
    [
        pytest.param("", id="none"),
        pytest.param("{", id="broken"),
        pytest.param('{"sentence": "s"}', id="parts-are-missing"),
        pytest.param("[" * 2000, id="deep"),
        pytest.param('{"sentence": "' + "x" * 20_000 + '"}', id="long"),
    ],
)
def test_what_cannot_be_read_is_no_receipt(written):
    notes = {names.ANNOTATION_MIGRATION_RECEIPT: written}
    assert receipt.read(builders.job(annotations=notes)) is None
