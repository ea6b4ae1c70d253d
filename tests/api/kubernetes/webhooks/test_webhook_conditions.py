"""When the API server asks a webhook, as the simulator evaluates it."""

import copy

import pytest

from api import names
from api.kubernetes.webhooks import webhook_conditions

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


def test_what_is_new_is_always_asked_about():
    for condition in webhook_conditions.BY_EXPRESSION.values():
        assert condition.holds(POD, None)
