"""An explanation ends with its lifetime, and one that nobody asked for with its pod."""

import pytest

from api import names, resources
from manager.explanation import plan as schedule_explanation
from manager.reconcile import actions

MADE = "2026-07-01T12:00:00Z"
NOW = 1782907200.0
OURS = {names.LABEL_CREATED_BY: "koord-extender"}


def found(ttl="", labels=None, confirmed=None):
    raw = {
        "metadata": {
            "name": "p",
            "namespace": "d",
            "uid": "u",
            "creationTimestamp": MADE,
            "labels": labels or {},
        },
        "spec": {"questionObjectKey": "d/p", **({"ttl": ttl} if ttl else {})},
        "status": {"lastUpdateTime": confirmed} if confirmed else {},
    }
    return schedule_explanation.view(raw)


@pytest.mark.parametrize(
    ("given", "missing", "age", "deleted", "again_in"),
    [
        pytest.param({"ttl": "1h"}, None, 10, False, 3590, id="fresh"),
        pytest.param({"ttl": "1h"}, None, 3600, True, None, id="expired"),
        pytest.param({}, None, 3600, False, 23 * 3600, id="a day where nothing is said"),
        pytest.param({"ttl": "0"}, 9, 1e9, False, None, id="for ever"),
        pytest.param(
            {"ttl": "1h", "confirmed": "2026-07-01T12:30:00Z"}, None, 3600, False, 1800,
            id="counted from the last confirmation",
        ),
        pytest.param({"ttl": "1h"}, 60, 60, False, 3540, id="a person's outlives its pod"),
        pytest.param({"ttl": "0", "labels": OURS}, 60, 60, True, None, id="ours does not"),
        pytest.param({"labels": OURS}, 2, 60, False, 3, id="a pod may be seen late"),
        pytest.param({"ttl": "1h", "labels": OURS}, None, 10, False, 3590, id="ours, pod there"),
    ],
)  # fmt: skip
def test_when_an_explanation_ends(given, missing, age, deleted, again_in):
    since = None if missing is None else NOW + age - missing
    wanted = schedule_explanation.planned(found(**given), missing_since=since, now=NOW + age)
    expected = (actions.Delete(resources.SCHEDULE_EXPLANATIONS, "p", "u", "d"),) if deleted else ()
    assert wanted.steps == expected
    assert wanted.again_in == again_in


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param({"metadata": {"name": "p"}}, id="no age"),
        pytest.param(
            {"metadata": {"creationTimestamp": MADE}, "spec": {"ttl": "soon"}}, id="no lifetime"
        ),
    ],
)
def test_what_cannot_be_read_is_left_alone(raw):
    assert schedule_explanation.view(raw) is None
