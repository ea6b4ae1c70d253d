"""The notes on a webhook configuration are read as they were written, whoever wrote them."""

import pytest

from api import names
from api.kubernetes.webhooks import webhook_configuration

NOTE = webhook_configuration.Withdrawal(
    "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z", "no answer", {"a": [{"operations": ["*"]}]}
)
END = webhook_configuration.moment(NOTE.until)


def test_a_note_comes_back_as_it_was():
    written = {names.ANNOTATION_WITHDRAWN: webhook_configuration.text(NOTE)}
    assert webhook_configuration.withdrawal(written) == NOTE
    assert webhook_configuration.withdrawal({}) is None


@pytest.mark.parametrize(("now", "held"), [(END - 1, True), (END, False), (END + 1, False)])
def test_a_note_holds_until_its_end(now, held):
    assert NOTE.holds(now) is held


@pytest.mark.parametrize("written", ["", "ask Ada", "{}", "[1]", '{"since": 1}'])
def test_what_a_person_writes_holds_for_ever(written):
    found = webhook_configuration.withdrawal({names.ANNOTATION_WITHDRAWN: written})
    assert found is not None
    assert found.by_hand
    assert found.holds(1e12)


def test_an_end_that_cannot_be_read_is_past():
    assert not webhook_configuration.Withdrawal("", "soon", "x").holds(1.0)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(None, webhook_configuration.Answering(), id="nothing said"),
        pytest.param("{", webhook_configuration.Answering(), id="unreadable"),
        pytest.param(
            '{"mode":"observe"}', webhook_configuration.Answering("observe"), id="observes"
        ),
        pytest.param('{"gates":["A"]}', webhook_configuration.Answering(gates=("A",)), id="gates"),
    ],
)
def test_how_it_answers(written, expected):
    found = {} if written is None else {names.ANNOTATION_ADMISSION: written}
    assert webhook_configuration.answering(found) == expected
