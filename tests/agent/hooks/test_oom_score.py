"""Whom the kernel kills first."""

import pytest

from agent.hooks import oom_score
from agent.model import state

ALL, EACH = "koordinator.sh/oom-score-adj", "koordinator.sh/oom-score-adj-spec"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, None),
        ({ALL: "500"}, 500),
        ({ALL: "-1001"}, None),
        ({ALL: "x"}, None),
        ({ALL: "500", EACH: '{"app":-7}'}, -7),
        ({ALL: "500", EACH: '{"other":-7}'}, 500),
        ({EACH: '{"app":1001}'}, None),
        ({ALL: "500", EACH: "{"}, None),
    ],
    ids=[
        "nothing asked",
        "for all",
        "beyond the kernel",
        "no number",
        "for one",
        "for another",
        "one beyond",
        "unreadable",
    ],
)
def test_a_container_gets_the_score_its_pod_asks_for(placed, annotations, expected):
    now = state.NodeState(at=0, pods=(placed(annotations=annotations),))
    found = [int(edit.value) for edit in oom_score.reconcile(now).wanted]
    assert found == ([] if expected is None else [expected])
