"""The arguments of scheduler plug-ins are judged where they are written."""

import pytest

from webhook import registry, review
from webhook.rules.configuration import scheduler_config_shape

NAME = "koord-scheduler-config"
GOOD = """
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: koord-scheduler
    pluginConfig:
      - name: LoadAwareScheduling
        args: {usageThresholds: {cpu: 60}}
"""
BAD = GOOD.replace("cpu: 60", "cpu: 160")
DOUBTFUL = GOOD.replace("args: {", "args: {estimator: mine, ")


def settings(text, name=NAME, **metadata):
    return {"metadata": {"name": name} | metadata, "data": {NAME: text}}


def check(body, old=None, *, namespace="koordinator-system", name=""):
    operation = "CREATE" if old is None else "UPDATE"
    asked = review.Review(operation, namespace, body, old, name=name)
    return scheduler_config_shape.check(asked, scheduler_config_shape.Settings())


def test_a_refusal_names_reason_place_value_and_range() -> None:
    refusal = check(settings(BAD)).refusal
    assert refusal is not None
    assert refusal.message == (
        "SchedulerConfigInvalid: koord-scheduler-config.profiles[0].pluginConfig[0].args"
        ".usageThresholds.cpu: is 160, must be at most 100; correct it or leave it out"
    )


def test_good_arguments_pass_and_doubtful_ones_with_a_warning() -> None:
    assert check(settings(GOOD)) == review.Decision()
    decision = check(settings(DOUBTFUL), old=settings(GOOD))
    assert decision.refusal is None
    (warning,) = decision.warnings
    assert "args.estimator: is unknown" in warning


def test_what_was_wrong_before_and_is_left_alone_passes() -> None:
    assert check(settings(BAD, labels={"a": "b"}), old=settings(BAD)).refusal is None
    assert check(settings(BAD), old=settings(GOOD)).refusal is not None


@pytest.mark.parametrize(
    ("namespace", "name"), [("default", NAME), ("koordinator-system", "other")]
)
def test_other_configuration_maps_pass_unread(namespace, name) -> None:
    assert check(settings("{", name), namespace=namespace) == review.Decision()


@pytest.mark.parametrize(
    "body",
    [{}, {"metadata": None, "data": None}, {"data": "x"}, {"data": {NAME: 1}}],
    ids=["empty", "nulls", "text", "number"],
)
def test_what_is_no_configuration_map_is_nothing_to_judge(body) -> None:
    assert check(body, name=NAME).refusal is None


def test_the_path_of_configuration_maps_asks_this_rule() -> None:
    decide = registry.ROUTES["/validate-configmap"].decide
    picture = review.Picture((), {}, {}, lambda _: 0, namespace="mine")
    asked = review.Review("CREATE", "mine", settings(BAD))
    refusal = decide(asked, picture).refusal
    assert refusal is not None
    assert refusal.group == scheduler_config_shape.GROUP
    assert decide(review.Review("CREATE", "mine", settings(GOOD)), picture).refusal is None
