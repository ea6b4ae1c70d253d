"""When the API server asks a webhook, as the simulator evaluates it."""

import copy

import pytest

from api import names
from api.kubernetes.webhooks import webhook_conditions
from webhook import quotas

PLAN = names.ANNOTATION_PLAN
POD = {
    "metadata": {"name": "p", "labels": {"a": "1"}, "finalizers": ["x/y"]},
    "spec": {"containers": [{"name": "c"}], "schedulingGates": [{"name": "g"}, {"name": "h"}]},
}


def changed(part, **fields):
    """A copy of the pod with other fields in one part; None removes a field."""
    pod = copy.deepcopy(POD)
    for field, value in fields.items():
        if value is None:
            del pod[part][field]
        else:
            pod[part][field] = value
    return pod


@pytest.mark.parametrize(
    ("now", "marked", "asked"),
    [
        pytest.param(POD, False, False, id="nothing"),
        pytest.param(changed("metadata", finalizers=None), False, False, id="finalizers"),
        pytest.param(changed("spec", schedulingGates=None), False, False, id="gates"),
        pytest.param(changed("spec", schedulingGates=[{"name": "g"}]), False, False, id="gate"),
        pytest.param(changed("metadata", labels={"a": "2"}), True, True, id="label"),
        pytest.param(changed("metadata", labels=None), True, True, id="labels-gone"),
        pytest.param(changed("metadata", annotations={"a": ""}), True, True, id="annotation"),
        pytest.param(changed("metadata", annotations={PLAN: "x"}), True, False, id="plan"),
        pytest.param(
            changed("metadata", annotations={PLAN: "x", "b": ""}), True, True, id="plan-and-more"
        ),
        pytest.param(changed("spec", containers=[{"name": "d"}]), False, True, id="container"),
        pytest.param(changed("spec", nodeSelector={"a": "1"}), False, True, id="selector"),
        pytest.param(changed("spec", containers=None), False, True, id="field-gone"),
    ],
)
def test_updates(now, marked, asked):
    assert webhook_conditions.MARKED.holds(now, POD) is marked
    assert webhook_conditions.POD_CHANGED.holds(now, POD) is asked


QUOTA = {
    "metadata": {
        "labels": {names.LABEL_QUOTA_PARENT: "above"},
        "annotations": {names.ANNOTATION_QUOTA_WEIGHT: '{"cpu":"1"}'},
    },
    "spec": {"max": {"cpu": "4"}},
    "status": {"used": {"cpu": "1"}},
}


def rewritten(part, value):
    """A copy of the quota with another value in the place of one part."""
    quota = inner = copy.deepcopy(QUOTA)
    *path, last = part
    for step in path:
        inner = inner[step]
    inner[last] = value
    return quota


@pytest.mark.parametrize(
    ("part", "value", "asked"),
    [
        pytest.param(("status",), {"used": {"cpu": "2"}}, False, id="status"),
        pytest.param(("metadata", "finalizers"), ["x/y"], False, id="finalizer"),
        pytest.param(
            ("metadata", "annotations", names.ANNOTATION_QUOTA_CHILD_REQUEST), "{}", False,
            id="figure",
        ),
        pytest.param(("metadata", "labels", "team"), "a", False, id="label-of-others"),
        pytest.param(("metadata", "labels", names.LABEL_QUOTA_TREE), "", False, id="empty"),
        pytest.param(("metadata", "labels", names.LABEL_QUOTA_TREE), "t", True, id="tree"),
        pytest.param(("metadata", "labels"), None, True, id="no-labels"),
        pytest.param(
            ("metadata", "annotations", names.ANNOTATION_QUOTA_WEIGHT), "{}", True, id="weight"
        ),
        pytest.param(("metadata", "annotations"), None, True, id="no-annotations"),
        pytest.param(("spec", "max", "cpu"), "5", True, id="max"),
        pytest.param(("spec", "min"), {}, True, id="min"),
    ],
)  # fmt: skip
def test_quotas_that_change_in_what_is_checked_are_asked_about(part, value, asked):
    now = rewritten(part, value)
    assert webhook_conditions.QUOTA_CHANGED.holds(now, QUOTA) is asked
    assert webhook_conditions.QUOTA_CHANGED.holds(QUOTA, now) is asked
    assert (quotas.said(now) != quotas.said(QUOTA)) is asked


def test_deleted_quotas_are_asked_about():
    assert webhook_conditions.QUOTA_CHANGED.holds(None, QUOTA)


def test_what_is_new_is_always_asked_about():
    for condition in webhook_conditions.BY_EXPRESSION.values():
        assert condition.holds(POD, None)
