"""What is remembered and logged of the agent's doing."""

import logging

import pytest

from agent.apply import audit
from agent.model import edits


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


def test_records_of_the_same_groups_share_their_names():
    kept = audit.Audit()
    for number in range(3):
        kept.add([record(str(number), groups=tuple("ab"), at=number)])
    first, *others = (one.groups for one in kept.records())
    assert first == ("a", "b")
    assert all(one is first for one in others)


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


def failed(*groups, at, value="79"):
    return record(value, "failed", groups, at)


def test_trouble_of_groups_that_were_tried_together_and_then_apart_is_told_once():
    kept = audit.Audit()
    kept.add([failed("a", "b", "c", "d", at=1)])
    for second, group in enumerate("abcd", start=2):
        kept.add([failed(group, at=second)])
    kept.add([failed("c", "d", at=7)])
    assert [(one.at, one.groups) for one in kept.records()] == [(1, ("a", "b", "c", "d"))]
    # A group that was not told of is, alone; so is another value, and what lasts for long.
    kept.add([failed("c", "e", at=8)])
    kept.add([failed("a", at=9, value="80")])
    kept.add([failed("a", at=audit.AGAIN_SECONDS + 1)])
    assert [(one.at, one.groups) for one in kept.records()[1:]] == [
        (8, ("e",)),
        (9, ("a",)),
        (audit.AGAIN_SECONDS + 1, ("a",)),
    ]


def test_what_is_remembered_of_trouble_is_bounded(monkeypatch):
    monkeypatch.setattr(audit, "MOST_TROUBLED", 3)
    kept = audit.Audit()
    for number in range(6):
        kept.add([failed(f"g{number}", at=number)])
    kept.add([failed("g5", at=6)])
    assert len(kept) == 6
    kept.add([failed("g0", at=7)])
    assert len(kept) == 7
