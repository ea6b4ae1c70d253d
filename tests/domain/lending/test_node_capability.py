"""What a node says that it cannot keep."""

import json

import pytest

from agent.model import capability_matrix
from api import names
from domain.lending import node_capability


def said(text: str) -> str:
    return node_capability.broken({names.ANNOTATION_STRATEGIES: text})


@pytest.mark.parametrize("verdict", list(capability_matrix.Verdict))
def test_only_a_node_that_holds_nothing_back_must_not_lend(
    verdict: capability_matrix.Verdict,
) -> None:
    rows = (
        capability_matrix.Row(
            node_capability.HOLDING, verdict, "the files of groups cannot be written from here"
        ),
        capability_matrix.Row("cache", capability_matrix.Verdict.UNAVAILABLE, "no resctrl"),
    )
    why = said(capability_matrix.published(rows))
    assert bool(why) == (verdict is capability_matrix.Verdict.UNAVAILABLE)
    assert ("cannot be written from here" in why) == bool(why)


def test_where_nobody_looked_nothing_is_known() -> None:
    assert node_capability.broken({}) == ""


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", json.dumps({"cpu-suppress": "unavailable"})]
)
def test_what_is_no_table_says_nothing(text: str) -> None:
    assert said(text) == ""
