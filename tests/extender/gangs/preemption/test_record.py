"""The record of a preemption for a gang: bounded, and of no use where it does not fit."""

import json

import pytest

from extender.gangs.preemption import record

NOW = 1782907200.0
ONE = record.Record("id", "default/a", {"uid-0": "n0"}, ("uid-1",), NOW, NOW + 60.0)


def changed(**more):
    return json.dumps(json.loads(record.encode(ONE)) | more)


def test_what_is_written_is_read():
    assert record.decode(record.encode(ONE), NOW, 100.0) == ONE


REFUSED = {
    "nothing": "",
    "no document": "{",
    "a record of a single pod": changed(v=1),
    "too many places": changed(places={f"u{n}": "n0" for n in range(1025)}),
    "too many victims": changed(victims=[f"u{n}" for n in range(513)]),
    "a uid that is too long": changed(victims=["u" * 65]),
    "no name of a node": changed(places={"u": "N 0"}),
    "past": changed(until=NOW),
    "too far away": changed(until=NOW + 101.0),
    "of the future": changed(at=NOW + 101.0),
    "too long": changed(group="g" * (161 << 10)),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_counts_for_nothing(text):
    assert record.decode(text, NOW, 100.0) is None


def test_the_largest_record_is_read():
    places = {f"00000000-0000-0000-0000-{n:012d}": f"node-{n:032d}" for n in range(1024)}
    victims = tuple(f"11111111-0000-0000-0000-{n:012d}" for n in range(512))
    one = record.Record("id", "default/a", places, victims, NOW, NOW + 60.0)
    assert record.decode(record.encode(one), NOW, 100.0) == one


@pytest.mark.parametrize(
    ("places", "fits"),
    [
        pytest.param({f"u{n}": "n0" for n in range(1024)}, True, id="as many as there may be"),
        pytest.param({f"u{n}": "n0" for n in range(1025)}, False, id="one more"),
        pytest.param({f"u{n}": "n" * 250 for n in range(700)}, False, id="long names of nodes"),
    ],
)
def test_a_record_that_could_not_be_read_again_is_known_before_it_is_written(places, fits):
    one = record.Record("id", "default/a", places, (), NOW, NOW + 60.0)
    assert record.fits(one) is fits
    assert (record.decode(record.encode(one), NOW, 100.0) is not None) is fits
