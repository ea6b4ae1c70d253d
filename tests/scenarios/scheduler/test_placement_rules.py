"""What a pod may say of the nodes and the pods that it wants."""

import pytest

NODE, POD = "nodeAffinity", "podAntiAffinity"
TERM = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
CONSTRAINT = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}


def near(**wanted):
    return {"affinity": {NODE: {TERM: {"nodeSelectorTerms": [wanted]}}}}


def apart(**term):
    return {"affinity": {POD: {TERM: [term]}}}


def spread(**changes):
    return {"topologySpreadConstraints": [{**CONSTRAINT, **changes}]}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param(spread(maxSkew=0), "maxSkew", id="no skew"),
        pytest.param(spread(topologyKey=""), "topologyKey", id="spread over nothing"),
        pytest.param(spread(whenUnsatisfiable="Never"), "whenUnsatisfiable", id="no such action"),
        pytest.param(
            spread(labelSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]}),
            "labelSelector.matchExpressions[0].operator",
            id="spread of an unknown operator",
        ),
        pytest.param(apart(labelSelector={}), "topologyKey", id="apart by nothing"),
        pytest.param(
            apart(topologyKey=HOST, labelSelector={"matchExpressions": [{}]}),
            "labelSelector.matchExpressions[0].operator",
            id="apart without an operator",
        ),
        pytest.param(
            apart(
                topologyKey=HOST,
                labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]},
            ),
            "labelSelector.matchExpressions[0].values",
            id="apart of no values",
        ),
        pytest.param(
            near(matchExpressions=[{}]), "matchExpressions[0].operator", id="near by nothing"
        ),
        pytest.param(
            near(matchExpressions=[{"key": "a", "operator": "Gt", "values": ["1", "2"]}]),
            "matchExpressions[0].values",
            id="greater than two values",
        ),
        pytest.param(
            near(matchFields=[{"key": "metadata.labels", "operator": "In", "values": ["a"]}]),
            "matchFields[0].key",
            id="a field that cannot be selected",
        ),
        pytest.param(
            near(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]),
            "matchFields[0].values",
            id="two names",
        ),
        pytest.param({"affinity": {NODE: {TERM: {}}}}, "nodeSelectorTerms", id="no terms"),
    ],
)
async def test_a_pod_that_makes_no_sense_is_refused(here, spec, field):
    answer = await here.api.call("POST", here.path("pods"), here.pod_body("web", **spec))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert any(cause["field"].endswith(field) for cause in answer.body["details"]["causes"])


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(spread(), id="spread"),
        pytest.param(apart(topologyKey=HOST), id="apart"),
        pytest.param(near(), id="near"),
        pytest.param(
            near(matchExpressions=[{"key": "a", "operator": "Gt", "values": ["x"]}]), id="greater"
        ),
        pytest.param(
            near(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["a"]}]),
            id="a name",
        ),
    ],
)
async def test_a_pod_that_makes_sense_is_taken(here, spec):
    await here.pod("web", **spec)
