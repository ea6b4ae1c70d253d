"""The annotation that keeps pods where they are."""

import pytest

from descheduler.model import exemption, object_projection


@pytest.mark.parametrize(
    ("annotations", "exempt"),
    [({}, False), ({"koord.sh/descheduler-exempt": "false"}, False)]
    + [({"koord.sh/descheduler-exempt": value}, True) for value in ("true", "", "yes")],
)
def test_any_value_but_false_keeps_pods(annotations, exempt):
    assert exemption.is_exempt(annotations) is exempt


def test_a_replica_set_is_exempt_with_its_deployment():
    above = object_projection.Controller(
        metadata=object_projection.core.ObjectMeta(
            uid="d", annotations={"koord.sh/descheduler-exempt": "true"}
        )
    )
    owner = object_projection.core.OwnerReference(kind="Deployment", uid="d", controller=True)
    below = object_projection.Controller(
        metadata=object_projection.core.ObjectMeta(uid="r", owner_references=(owner,))
    )
    found = object_projection.resolved(
        [
            object_projection.workload("Deployment", above),
            object_projection.workload("ReplicaSet", below),
        ]
    )
    assert found["r"].is_exempt
