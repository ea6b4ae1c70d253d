"""The rules of a path in their order, and the gates that leave some out."""

import dataclasses

import pytest

from api import names
from api.koordinator import colocation
from tests import builders
from webhook import gates, pods, registry, review

PICTURE = review.Picture(
    profiles=(
        colocation.read_profile(
            builders.a_profile("batch", qosClass="BE", priorityClassName="koord-batch")
        ),
    ),
    namespaces={"default": {}},
    priority_classes={"koord-batch": review.PriorityClass("koord-batch", 5000)},
    draw=lambda _: 0,
)
ASKED = review.Review("CREATE", "default", builders.a_pod(cpu="1", memory="1Gi"))


@pytest.mark.parametrize(
    ("on", "rewritten", "recorded"),
    [
        (frozenset(), True, True),
        (frozenset({gates.SKIP_RESOURCES}), False, False),
        (frozenset({gates.DISABLE_RECORD}), True, False),
    ],
    ids=["none", "resources are left", "nothing is recorded"],
)
def test_gates_leave_steps_out(on: frozenset[str], rewritten: bool, recorded: bool) -> None:
    decision = pods.mutate(ASKED, dataclasses.replace(PICTURE, gates=on))
    assert decision.refusal is None
    assert decision.object is not None
    requests = decision.object["spec"]["containers"][0]["resources"]["requests"]
    assert (names.BATCH_CPU in requests) is rewritten
    annotations = decision.object["metadata"].get("annotations", {})
    assert (names.ANNOTATION_EXTENDED_RESOURCE_SPEC in annotations) is recorded


def test_every_route_has_a_name_of_its_own() -> None:
    assert len({route.name for route in registry.ROUTES.values()}) == len(registry.ROUTES)
    assert {gate.name for gate in registry.GATES if gate.default} == gates.ON


def test_the_path_of_cluster_settings_asks_what_is_configured() -> None:
    text = '{"nodeStrategies": [{"nodeSelector": {"matchLabels": {"pool": "gold"}}}]}'
    body = {
        "metadata": {"name": names.CONFIG_MAP_SLO},
        "data": {"resource-threshold-config": text},
    }
    asked = review.Review("UPDATE", names.NAMESPACE, body, {}, name=names.CONFIG_MAP_SLO)
    decide = registry.ROUTES["/validate-configmap"].decide
    assert decide(asked, PICTURE).refusal is None
    refusal = decide(asked, PICTURE.but(names_required=True)).refusal
    assert refusal is not None
    assert "nodeStrategies[0].name: is missing" in refusal.message
