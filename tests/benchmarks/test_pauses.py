"""The cycles of a Go program's garbage collector are read from its log."""

import os
import time

import pytest

from benchmarks.admission import pauses

LOG = """I1121 18:46:24.000000 some line of the program itself
gc 1 @0.020s 3%: 0.09+1.5+0.02 ms clock, 0.18+0.5/1.2/0+0.04 ms cpu, 4->5->2 MB, 5 MB goal, 2 P
gc 12 @12.500s 2%: 0.10+299.4+0.50 ms clock, 0.2+9/40/0+1 ms cpu, 233->240->154 MB, 0 MB, 2 P
"""


def test_every_cycle_has_its_place_in_time():
    first, second = pauses.cycles(LOG, 100.0)
    assert first == pytest.approx((100.02, 100.02161))
    assert second == pytest.approx((112.5, 112.8))


@pytest.mark.parametrize(
    ("start", "end", "met"),
    [(0.0, 1.0, False), (0.0, 2.0, True), (2.5, 2.6, True), (0.0, 9.0, True), (3.5, 4.0, False)],
)
def test_a_call_meets_what_overlaps_with_it(start, end, met):
    assert pauses.meets(pauses.Span(start, end), [pauses.Span(2.0, 3.0)]) is met


def test_a_process_started_in_the_past():
    assert time.perf_counter() - 86_400 * 30 < pauses.started(os.getpid()) < time.perf_counter()
