"""A bucket never gives more than it holds and has gained."""

import hypothesis
from hypothesis import strategies as st

from process.runtime import token_bucket
from process.runtime.clock import ManualClock


def test_a_full_bucket_is_emptied_and_fills_again():
    bucket = token_bucket.Bucket(2.0, 3)
    assert [bucket.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert bucket.left(0.4) == 0
    assert bucket.take(0.5)
    assert bucket.left(100.0) == 3


@hypothesis.given(st.lists(st.floats(0, 5), max_size=50))
def test_no_more_is_given_than_rate_and_burst_allow(pauses):
    bucket, now, given = token_bucket.Bucket(1.5, 4), 0.0, 0
    for pause in pauses:
        now += pause
        given += bucket.take(now)
    assert given <= 4 + 1.5 * now + 1e-6


async def test_reports_get_what_urgent_writes_leave_and_a_tenth_at_least():
    clock = ManualClock()
    bucket = token_bucket.YieldingBucket(clock, 20.0, 10)
    reported = 0
    for _ in range(100):
        for _ in range(4):
            bucket.spend()
        reported += bucket.take()
        await clock.advance(0.1)
    assert 15 <= reported <= 32  # 40 urgent writes a second: saved 10, and a tenth of 20 a second.
    reported = 0
    for _ in range(100):
        bucket.spend()
        reported += bucket.take() + bucket.take()
        await clock.advance(0.1)
    assert 75 <= reported <= 100  # 10 urgent writes a second: the other 10, less what is owed.
    reported = 0
    for _ in range(100):
        reported += bucket.take() + bucket.take() + bucket.take()
        await clock.advance(0.1)
    assert 195 <= reported <= 215  # Alone they get the rate and no more.
