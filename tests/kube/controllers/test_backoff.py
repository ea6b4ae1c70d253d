"""Pauses after failures, and keys that rest after theirs."""

import random

import pytest

from kube.controllers import backoff


@pytest.mark.parametrize(
    ("failures", "full"), [(0, 1), (1, 1), (2, 2), (5, 16), (7, 60), (10_000, 60)]
)
def test_pauses_double_up_to_a_bound(failures, full):
    rng = random.Random(3)
    pauses = [backoff.pause(failures, 1.0, 60.0, rng) for _ in range(50)]
    assert full / 2 <= min(pauses) < max(pauses) <= full


def test_pauses_grow_within_bounds(rng):
    pauses = [backoff.pause(failures, 1.0, 30.0, rng) for failures in range(1, 2000)]
    for number, pause in enumerate(pauses):
        full = min(30.0, 2.0 ** min(number, 10))
        assert full / 2 <= pause <= full


def test_a_key_rests_longer_after_each_failure_and_not_at_all_after_a_success():
    now = 100.0
    failed = backoff.Failures(lambda: now, 1.0, 60.0, random.Random(3))
    assert not failed.rests("a")
    failed.note("a", written=False)
    assert failed.rests("a")
    assert not failed.rests("b")
    now += 1.1
    assert not failed.rests("a")
    for _ in range(5):
        failed.note("a", written=False)
    now += 15
    assert failed.rests("a")
    failed.note("a", written=True)
    assert not failed.rests("a")


def test_keys_that_are_not_wanted_any_more_are_forgotten():
    failed = backoff.Failures(lambda: 0.0, 1.0, 60.0)
    for key in ("a", "b"):
        failed.note(key, written=False)
    failed.keep(lambda key: key == "b")
    assert (failed.rests("a"), failed.rests("b")) == (False, True)
