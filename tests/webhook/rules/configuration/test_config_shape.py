"""The configuration map of the cluster is judged where it is written."""

import json

import pytest

from webhook import review
from webhook.rules.configuration import config_shape

BAD = {"clusterStrategy": {"cpuSuppressThresholdPercent": 101}}
GOOD = {"clusterStrategy": {"cpuSuppressThresholdPercent": 60}}


def settings(value, name="slo-controller-config"):
    text = value if isinstance(value, str) else json.dumps(value)
    return {"metadata": {"name": name}, "data": {"resource-threshold-config": text}}


def check(body, old=None, *, namespace="koordinator-system", name="", nodes=None, **chosen):
    operation = "CREATE" if old is None else "UPDATE"
    asked = review.Review(operation, namespace, body, old, name=name)
    return config_shape.check(asked, config_shape.Settings(**chosen), lambda: nodes or {})


def test_a_refusal_names_reason_place_value_and_range() -> None:
    refusal = check(settings(BAD)).refusal
    assert refusal is not None
    assert refusal.group == "ConfigParamInvalid"
    assert refusal.message == (
        "ConfigParamInvalid: resource-threshold-config.clusterStrategy.cpuSuppressThresholdPercent:"
        " is 101, must be in 0..100; correct it or leave it out"
    )


def test_good_settings_pass() -> None:
    assert check(settings(GOOD)) == review.Decision()


def test_what_was_wrong_before_and_is_left_alone_passes() -> None:
    assert check(settings(BAD), old=settings(BAD)).refusal is None
    assert check(settings(BAD), old=settings(GOOD)).refusal is not None


@pytest.mark.parametrize(
    ("namespace", "name"), [("default", "slo-controller-config"), ("koordinator-system", "other")]
)
def test_other_configuration_maps_pass_unread(namespace, name) -> None:
    assert check(settings("{", name), namespace=namespace) == review.Decision()


def test_another_name_may_be_configured() -> None:
    asked = review.Review("CREATE", "n", settings("{", "mine"))
    chosen = config_shape.Settings(namespace="n", name="mine")
    assert config_shape.check(asked, chosen, dict).refusal is not None


@pytest.mark.parametrize(
    "body",
    [{}, {"metadata": None, "data": None}, {"data": "x"}, {"data": {"colocation-config": 1}}],
)
def test_what_is_no_configuration_map_is_nothing_to_judge(body) -> None:
    assert check(body, name="slo-controller-config").refusal is None


def test_existing_nodes_are_asked_only_where_entries_could_meet() -> None:
    entries = [
        {"name": n, "nodeSelector": {"matchLabels": {k: "x"}}} for n, k in (("a", "p"), ("b", "q"))
    ]
    body = settings({"nodeStrategies": entries})
    assert check(body).refusal is None
    refusal = check(body, nodes={"n1": {"p": "x", "q": "x"}}).refusal
    assert refusal is not None
    assert refusal.group == "ExistNodeConfict"
    assert "node n1" in refusal.message

    def never():
        raise AssertionError("nobody asked for nodes")

    asked = review.Review("CREATE", "koordinator-system", settings(GOOD))
    assert config_shape.check(asked, config_shape.Settings(), never).refusal is None


def test_a_doubt_comes_as_a_warning() -> None:
    decision = check(settings({"clusterStrategy": {"cpuSuppressThreshold": 60}}))
    assert decision.refusal is None
    (warning,) = decision.warnings
    assert "did you mean cpuSuppressThresholdPercent?" in warning
