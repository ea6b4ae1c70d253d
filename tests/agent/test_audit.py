"""What is remembered and logged of the agent's doing."""

import logging

import pytest

from agent import edits
from agent.apply import audit


def record(value="0-1", outcome="written", groups=("a", "b"), at=0.0):
    return audit.Record(at, outcome, edits.Role.CPUSET, value, groups, "busy")


def test_the_same_twice_in_a_row_is_said_once(caplog):
    kept = audit.Audit()
    with caplog.at_level(logging.INFO):
        kept.add([record(at=1)])
        kept.add([record(at=2)])
        kept.add([record("0-2", at=3)])
    assert [r.at for r in kept.records()] == [1, 3]
    assert len(caplog.messages) == 2
    assert caplog.messages[0].startswith("written role=cpuset value='0-1' groups=2 named=a,b")


def test_after_a_pause_it_is_news_again():
    kept = audit.Audit()
    for batch in ([record(at=1)], [], [record(at=3)]):
        kept.add(batch)
    assert [r.at for r in kept.records()] == [1, 3]


def test_two_values_side_by_side_stay_two():
    kept = audit.Audit()
    for second in range(5):
        kept.add([record("0-1", at=second), record("0-7", groups=("c",), at=second)])
    assert len(kept) == 2


def test_only_the_newest_are_kept():
    kept = audit.Audit(most=3)
    for number in range(10):
        kept.add([record(str(number), at=number)])
    assert [r.at for r in kept.records()] == [7, 8, 9]


@pytest.mark.parametrize(
    ("outcome", "level"),
    [("written", logging.INFO), ("failed", logging.WARNING), ("given up", logging.WARNING)],
)
def test_trouble_is_a_warning(caplog, outcome, level):
    with caplog.at_level(logging.INFO):
        audit.Audit().add([record(outcome=outcome)])
    assert caplog.records[0].levelno == level


def test_records_are_served_as_json():
    assert record().as_json() == {
        "at": 0.0,
        "outcome": "written",
        "role": "cpuset",
        "value": "0-1",
        "groups": ["a", "b"],
        "reason": "busy",
        "previous": "",
    }


def test_news_reach_the_sink_in_one_piece():
    kept, seen = audit.Audit(), []
    kept.sink = seen.append
    kept.add([record(), record(value="0-3")])
    kept.add([record()])
    assert [[one.value for one in news] for news in seen] == [["0-1", "0-3"]]
    event = seen[0][0].as_event()
    assert (event["createdAt"], event["to"]) == ("1970-01-01T00:00:00Z", "0-1")
