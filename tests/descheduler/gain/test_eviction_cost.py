"""Evicting a pod costs more the more important, the slower to start and the tighter its budget."""

import pytest

from api import names
from api.koordinator.metadata import qos
from descheduler.gain import eviction_cost
from descheduler.model import objects, podinfo
from tests.descheduler import builders

NOW = builders.NOW
BATCH = {"band": qos.Band.BATCH, "started": NOW}
MOST = str(2**31 - 1)


def parts(slack=None, **fields):
    return eviction_cost.parts(builders.pod("p", "n1", **{**BATCH, **fields}), NOW, slack)


def restarted(times):
    return (podinfo.Container("a", restarts=times),)


@pytest.mark.parametrize(
    ("fields", "ground", "points"),
    [
        pytest.param({}, "eviction", 1.0, id="an-eviction"),
        pytest.param({"band": qos.Band.MID}, "priority", 0.5, id="mid"),
        pytest.param({"band": qos.Band.PROD}, "priority", 1.0, id="prod"),
        pytest.param({"band": qos.Band.NONE}, "priority", 1.0, id="no-class"),
        pytest.param({"priority": 10_000}, "priority", 1.0, id="above-all-bands"),
        pytest.param(
            {"priority": 10_000, "labels": {names.LABEL_PRIORITY_CLASS: "koord-batch"}},
            "priority", 0.0, id="above-all-bands-and-labelled",
        ),
        pytest.param({"restarts_cost_seconds": 90.0}, "start", 1.5, id="a-slow-start"),
        pytest.param({"restarts_cost_seconds": 1e9}, "start", 5.0, id="the-slowest"),
        pytest.param({"restarts_cost_seconds": -5.0}, "start", 0.0, id="a-wrong-clock"),
        pytest.param({"containers": restarted(3)}, "restarts", 0.3, id="restarts"),
        pytest.param({"containers": restarted(500)}, "restarts", 1.0, id="many-restarts"),
        pytest.param({"started": NOW - 43_200}, "age", 0.5, id="half-a-day"),
        pytest.param({"started": 1.0}, "age", 1.0, id="old"),
        pytest.param({"started": -1.0}, "age", 0.0, id="not-started"),
        pytest.param({"slack": 1}, "budget", 1.0, id="the-last-eviction"),
        pytest.param({"slack": 4}, "budget", 0.25, id="some-slack"),
        pytest.param({"slack": None}, "budget", 0.0, id="no-budget"),
    ],
)  # fmt: skip
def test_each_ground_has_its_points(fields, ground, points):
    assert parts(**fields).get(ground, 0.0) == pytest.approx(points)


@pytest.mark.parametrize(
    ("written", "points"),
    [
        pytest.param({names.ANNOTATION_EVICTION_COST: "100"}, 0.5, id="dear"),
        pytest.param({names.ANNOTATION_POD_DELETION_COST: "-100"}, -0.5, id="cheap"),
        pytest.param({names.ANNOTATION_EVICTION_COST: MOST}, 1.0, id="the-dearest"),
        pytest.param({names.ANNOTATION_EVICTION_COST: "many"}, 0.0, id="unreadable"),
    ],
)
def test_annotated_costs_stay_within_one_point(written, points):
    found = parts(annotations=written).get("annotation", 0.0)
    assert found == pytest.approx(points, abs=1e-6)
    assert -1 < found < 1


def test_costs_add_up_and_are_never_nothing():
    found = parts(slack=2, restarts_cost_seconds=60.0)
    assert eviction_cost.total(found) == pytest.approx(1 + 1 + 0.5)
    cheapest = {"eviction": 1.0, "annotation": -0.999}
    assert eviction_cost.total(cheapest) == eviction_cost.LEAST


def test_slack_is_that_of_the_tightest_budget_less_what_the_round_has_taken():
    selector = {"matchLabels": {"app": "web"}}
    slack = eviction_cost.Slack(
        [
            objects.Budget("default/loose", selector, 5),
            objects.Budget("default/tight", {"matchExpressions": []}, 2),
            objects.Budget("other/none", {}, 0),
            objects.Budget("default/nothing", None, 0),
        ]
    )
    web, db = builders.pod("web", labels={"app": "web"}), builders.pod("db")
    assert (slack.of(web), slack.of(db)) == (2, 2)
    slack.take(web)
    assert (slack.of(web), slack.of(db)) == (1, 1)
    assert slack.of(builders.pod("elsewhere/web")) is None


def test_a_budget_that_cannot_be_read_counts():
    wrong = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}
    slack = eviction_cost.Slack([objects.Budget("default/wrong", wrong, 1)])
    assert slack.of(builders.pod("web")) == 1
