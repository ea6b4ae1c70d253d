"""Looks in a thread of their own."""

import threading
import time

import pytest

from agent.host import files, hanging_reads
from tests import patience


def until(condition, seconds=patience.SECONDS):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        threading.Event().wait(0.001)
    return found


@pytest.fixture
def begun():
    made = []

    def begin(look):
        made.append(hanging_reads.Apart(look, "the look"))
        return made[-1]

    yield begin
    assert all(one.close() for one in made)


def test_a_turn_returns_what_the_one_before_found(begun):
    one = begun(lambda at: ("seen", at))
    assert one.turn(1.0) is None
    assert until(lambda: one.turn(2.0)) == ("seen", 1.0)
    assert until(lambda: one.turn(3.0)) == ("seen", 2.0)


def test_a_look_that_hangs_is_named_and_no_other_begins(begun):
    released, looks = threading.Event(), []

    def look(at):
        looks.append(at)
        released.wait(patience.SECONDS)
        return at

    one = begun(look)
    assert one.turn(0.0) is None
    assert one.turn(1.0) is None
    with pytest.raises(files.ReadingError, match="has not answered for 60 seconds"):
        one.turn(60.0)
    until(lambda: looks == [0.0])
    released.set()
    assert until(lambda: one.turn(4.0) is not None)


@pytest.mark.parametrize("error", [files.ReadingError("no"), ValueError("odd")])
def test_a_look_that_fails_is_raised_and_the_next_one_begins(begun, error):
    outcomes = [error, "good"]

    def look(at):
        found = outcomes.pop(0) if outcomes else "good"
        if isinstance(found, Exception):
            raise found
        return found

    one = begun(look)
    one.turn(0.0)

    def turned():
        try:
            return one.turn(1.0)
        except type(error) as caught:
            return caught

    assert until(turned) is error
    assert until(turned) == "good"


def test_nothing_runs_before_the_first_turn():
    assert hanging_reads.Apart(lambda at: at, "x").close()
