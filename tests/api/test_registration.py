"""The notes on a webhook configuration are read as they were written, whoever wrote them."""

import pytest

from api import names, registration

NOTE = registration.Withdrawal(
    "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z", "no answer", {"a": [{"operations": ["*"]}]}
)
END = registration.moment(NOTE.until)


def test_a_note_comes_back_as_it_was():
    written = {names.ANNOTATION_WITHDRAWN: registration.text(NOTE)}
    assert registration.withdrawal(written) == NOTE
    assert registration.withdrawal({}) is None


@pytest.mark.parametrize(("now", "held"), [(END - 1, True), (END, False), (END + 1, False)])
def test_a_note_holds_until_its_end(now, held):
    assert NOTE.holds(now) is held


@pytest.mark.parametrize("written", ["", "ask Ada", "{}", "[1]", '{"since": 1}'])
def test_what_a_person_writes_holds_for_ever(written):
    found = registration.withdrawal({names.ANNOTATION_WITHDRAWN: written})
    assert found is not None
    assert found.by_hand
    assert found.holds(1e12)


def test_an_end_that_cannot_be_read_is_past():
    assert not registration.Withdrawal("", "soon", "x").holds(1.0)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(None, registration.Answering(), id="nothing said"),
        pytest.param("{", registration.Answering(), id="unreadable"),
        pytest.param('{"mode":"observe"}', registration.Answering("observe"), id="observes"),
        pytest.param('{"gates":["A"]}', registration.Answering(gates=("A",)), id="gates"),
    ],
)
def test_how_it_answers(written, expected):
    found = {} if written is None else {names.ANNOTATION_ADMISSION: written}
    assert registration.answering(found) == expected
