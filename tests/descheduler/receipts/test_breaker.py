"""A profile whose moves do not pay is halted, for longer each time, with the figures."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from descheduler.receipts import breaker, receipt

OPTIONS = breaker.Options()
V = receipt.Verdict
START = 1_700_000_000.0


def one(verdict, at=START, gain=10.0, gained=1.0):
    outcome = receipt.Outcome(verdict, at + 400, gain=gained)
    return receipt.Receipt(
        "s", "default", "p", "Balance", "d/p", "a", at, gain=gain, outcome=outcome
    )


def run(verdicts, before=breaker.NEW, at=START, options=OPTIONS):
    for number, verdict in enumerate(verdicts):
        before = breaker.entered(before, one(verdict, at + number), options, at + number)
    return before


def test_moves_that_pay_halt_nothing():
    found = run([V.PAID] * 20)
    assert not found.is_halted(START)
    assert len(found.moves) == OPTIONS.window


def test_a_profile_is_halted_when_less_than_its_share_has_paid():
    assert not run([V.PAID, V.NOT_PAID, V.NOT_PAID, V.NOT_PAID]).is_halted(START + 4)
    found = run([V.PAID, V.NOT_PAID, V.NOT_PAID, V.NOT_PAID, V.PAID])
    assert found.is_halted(START + 10)
    assert not found.is_halted(found.halted_until)
    assert found.halted_until == START + 4 + OPTIONS.halt_seconds
    assert found.sentence("default") == (
        "profile default is halted until 2023-11-14 22:43 UTC: 2 of its last 5 moves paid, fewer "
        "than 50%; they gained 1.0 points on average, 10.0 were expected"
    )


def test_exactly_its_share_is_enough():
    assert not run([V.PAID, V.NOT_PAID] * 3).is_halted(START + 6)
    assert run([V.PAID, V.NOT_PAID] * 3 + [V.NOT_PAID]).is_halted(START + 7)


def test_moves_without_figures_are_counted_without_them():
    found = breaker.NEW
    for number in range(5):
        entry = one(V.NOT_PAID, START + number, gained=None)
        found = breaker.entered(found, entry, OPTIONS, START)
    assert found.why == "0 of its last 5 moves paid, fewer than 50%"


@pytest.mark.parametrize("verdict", [V.UNKNOWN, V.NOT_MOVED])
def test_what_is_not_known_counts_neither_way(verdict):
    assert run([verdict] * 20) == breaker.NEW
    open_ = msgspec.structs.replace(one(V.PAID), outcome=None)
    assert breaker.entered(breaker.NEW, open_, OPTIONS, START) == breaker.NEW


def test_each_further_halt_is_twice_as_long_up_to_a_bound():
    found, lengths = breaker.NEW, []
    for _ in range(7):
        at = max(found.halted_until, START) + 1
        found = run([V.NOT_PAID] * 5, found, at)
        lengths.append(found.halted_until - found.halted_at)
    assert lengths == [1800, 3600, 7200, 14_400, 28_800, 28_800, 28_800]


def test_no_row_of_halts_is_too_long():
    """A year of moves that do not pay, at three halts a day."""
    halted = run([V.NOT_PAID] * 5, breaker.Breaker(halts=1100))
    assert halted.halted_until - halted.halted_at == OPTIONS.longest_halt_seconds
    assert halted.halts == 1101


def test_moves_from_before_a_halt_do_not_count_after_it():
    halted = run([V.NOT_PAID] * 5)
    assert run([V.NOT_PAID] * 9, halted, START - 100) == halted


def test_a_window_that_pays_ends_the_row_of_halts():
    halted = run([V.NOT_PAID] * 5)
    after = halted.halted_until + 1
    assert run([V.PAID] * 9, halted, after).halts == 1
    found = run([V.PAID] * 10, halted, after)
    assert (found.halts, found.is_halted(after + 10)) == (0, False)


VERDICTS = st.lists(st.sampled_from(list(V)), max_size=60)


@given(verdicts=VERDICTS)
def test_it_is_bounded_survives_writing_and_halts_only_with_a_reason(verdicts):
    found = run(verdicts)
    assert len(found.moves) <= OPTIONS.window
    again = msgspec.json.decode(msgspec.json.encode(found), type=breaker.Breaker)
    assert again == found
    assert found.halts * 3 <= verdicts.count(V.NOT_PAID)
