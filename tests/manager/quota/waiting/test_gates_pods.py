"""What of a change of a quota concerns the pods that wait for it."""

import pytest

from manager.quota import objects
from manager.quota.waiting import gates_pods
from tests.manager.quota.conftest import a_quota

WRITTEN = a_quota("team", most={"cpu": "4"}, status={"used": {"cpu": "3"}})


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(
            a_quota(
                "team",
                most={"cpu": "4"},
                status={"used": {"cpu": "4"}},
                annotations={"runtime": '{"cpu":"4"}', "child-request": '{"cpu":"9"}'},
                version=2,
            ),
            False,
            id="its-figures",
        ),
        pytest.param(a_quota("team", most={"cpu": "5"}, version=2), True, id="its-max"),
        pytest.param(
            a_quota("team", most={"cpu": "4"}, labels={"parent": "other"}, version=2),
            True,
            id="its-parent",
        ),
        pytest.param(
            a_quota("team", most={"cpu": "4"}, annotations={"namespaces": '["a"]'}, version=2),
            True,
            id="its-namespaces",
        ),
        pytest.param(None, True, id="it-has-gone"),
    ],
)
def test_a_quota_whose_status_was_written_concerns_nobody(after, expected):
    seen = None if after is None else objects.quota(after)
    assert gates_pods.is_rewritten(objects.quota(WRITTEN), seen) is expected
    assert gates_pods.is_rewritten(seen, objects.quota(WRITTEN)) is expected
