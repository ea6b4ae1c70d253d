"""What is remembered survives writing, is bounded, and what cannot be read is refused."""

import pytest

from api.wire import untrusted
from descheduler.framework.planning import history
from descheduler.receipts import breaker, memory

MOVED = history.Moved(1.0, "default", "a", "web", "b")
HALTED = breaker.Breaker((breaker.Settled(1.0, True, 2.0, 3.0),), 4.0, 5.0, 1, "why")


def test_it_is_read_back_as_it_was_written():
    looped = history.Moved(2.0, "default", "b", "web", "a", 2, 1, {"a": 1.0})
    one = memory.Memory({"default": HALTED}, {"uid": MOVED, "other": looped})
    assert memory.read({memory.KEY: memory.text(one)}) == one


@pytest.mark.parametrize("data", [None, {}, {"other": "x"}], ids=["none", "empty", "another-key"])
def test_nothing_is_remembered_where_nothing_was_written(data):
    assert memory.read(data) == memory.NOTHING


def test_the_latest_moves_are_kept():
    moves = {
        f"u{number}": history.Moved(float(number), "d") for number in range(memory.MOST_MOVES + 5)
    }
    found = memory.read({memory.KEY: memory.text(memory.Memory({}, moves))})
    assert len(found.moves) == memory.MOST_MOVES
    assert "u4" not in found.moves
    assert "u5" in found.moves
    most = {f"p{number:03}": HALTED for number in range(memory.MOST_PROFILES + 5)}
    assert len(memory.read({memory.KEY: memory.text(memory.Memory(most))}).breakers) == (
        memory.MOST_PROFILES
    )


def test_what_is_written_at_most_fits_into_a_config_map():
    name = "n" * 63
    moves = {
        f"{number:036}": history.Moved(1.7e9 + number, name, name, f"{number:036}", name)
        for number in range(memory.MOST_MOVES)
    }
    many = breaker.Breaker(tuple([breaker.Settled(1.7e9, True, 1.25, 1.25)] * 10), 1.7e9, 1.7e9, 3)
    profiles = {f"{name}{number}": many for number in range(memory.MOST_PROFILES)}
    text = memory.text(memory.Memory(profiles, moves))
    assert len(text) < 768 << 10
    assert memory.read({memory.KEY: text}).moves == moves


def test_of_moves_with_long_names_the_latest_are_kept_that_fit():
    name = "n" * 253
    left = {f"{name[1:]}{number}": 1.7e9 for number in range(4)}
    moves = {
        f"{number:036}": history.Moved(1.7e9 + number, name, name, "w" * 36, name, 9, 3, left)
        for number in range(memory.MOST_MOVES)
    }
    text = memory.text(memory.Memory({}, moves))
    assert len(text) < 768 << 10
    found = memory.read({memory.KEY: text}).moves
    assert sorted(found) == sorted(moves)[-len(found) :]
    assert len(found) > 300


BEYOND_TIME = '{"breakers": {"default": {"halted_until": 1e300}}}'


@pytest.mark.parametrize("written", ["{", "[]", '{"moves": {"u": {}}}', "[" * 3000, BEYOND_TIME])
def test_what_cannot_be_read_is_refused(written):
    with pytest.raises(untrusted.ReadError, match=r"memory\.json"):
        memory.read({memory.KEY: written})
