"""Rows that are found for all names at once are those of the names, or none are found."""

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from extender.state.table import node_names

ALIKE = [f"worker-{number:03d}.pool-a" for number in range(40)]
KINDS = st.sampled_from(
    [
        ALIKE,
        [f"{number:03d}-of-a-pool-with-a-long-name-{number % 7}" for number in range(40)],
        ["abcde", "abcdf", "bbcde"],
        ["the-only-node"],
        ['a","b","c', 'a","b","d'],
        ["knoten-ä", "knoten-ö"],
    ]
)


def _text(names, **options):
    return json.dumps(names, ensure_ascii=False, separators=(",", ":"), **options).encode()


@hypothesis.given(data=st.data(), known=KINDS)
def test_rows_are_those_of_the_names(data, known):
    rows = {name: 3 * number + 1 for number, name in enumerate(known)}
    asked = data.draw(st.lists(st.sampled_from([*known, "nobody", known[0][:-1], known[0] + "x"])))
    found = node_names.table(rows).find(_text(asked))
    if asked and set(asked) <= set(known):
        assert found.tolist() == [rows[name] for name in asked]
    else:
        assert found is None


@hypothesis.given(data=st.data(), known=KINDS)
def test_a_text_that_says_something_else_is_not_taken_for_names(data, known):
    rows = {name: number for number, name in enumerate(known)}
    text = bytearray(_text(data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=5))))
    place = data.draw(st.integers(0, len(text) - 1))
    text[place] = data.draw(st.sampled_from(b'[]{}",:ab0 \\'))
    found = node_names.table(rows).find(bytes(text))
    if found is not None:
        assert [rows[name] for name in json.loads(text)] == found.tolist()


@pytest.mark.parametrize("names", [[], ["n1", "n2"], ["worker-1", "worker-10"]])
def test_names_that_are_short_or_of_several_lengths_have_no_table(names):
    assert node_names.table({name: row for row, name in enumerate(names)}) is None


def test_a_table_follows_the_nodes():
    tables = node_names.Tables()
    rows = {name: row for row, name in enumerate(ALIKE)}
    text = _text(ALIKE[:3])
    assert tables.find(text, rows, 1) is None
    assert tables.find(text, rows, 1).tolist() == [0, 1, 2]
    rows = {name: row + 5 for name, row in rows.items()}
    assert tables.find(text, rows, 2) is None
    assert tables.find(text, rows, 2).tolist() == [5, 6, 7]


def test_names_are_read_by_row():
    rows = node_names.table({name: row for row, name in enumerate(ALIKE)}).find(_text(ALIKE[5:9]))
    names = node_names.NamesByRow(ALIKE, rows)
    assert list(names) == ALIKE[5:9]
    assert (len(names), names[-1], names[1:3], ALIKE[7] in names) == (
        4,
        ALIKE[8],
        ALIKE[6:8],
        True,
    )
    assert ALIKE[0] not in names


@pytest.mark.parametrize("count", [1, 700, 3000])
def test_every_node_of_a_large_cluster_is_found(count):
    names = [
        f"ip-{at % 250:03d}-{at * 7 % 241:03d}-{at // 250:03d}.internal" for at in range(count)
    ]
    found = node_names.table({name: row for row, name in enumerate(names)}).find(_text(names))
    assert found.tolist() == list(range(count))
