"""How agents are told to measure."""

from api import names, resources
from manager.cluster_settings import strategy
from manager.nodemetric import plan as node_metric
from manager.reconcile import actions, node_objects

DEFAULT = {
    "metricCollectPolicy": {
        "aggregateDurationSeconds": 300,
        "reportIntervalSeconds": 60,
        "nodeAggregatePolicy": {"durations": ["5m0s", "10m0s", "30m0s"]},
        "nodeMemoryCollectPolicy": "usageWithoutPageCache",
    }
}


def rules(**changed: object) -> strategy.Strategy:
    return strategy.read({**strategy.DEFAULT, **changed})


def present(spec, *managed):
    labels = {names.LABEL_CREATED_BY: "koord-manager"}
    return node_objects.present(
        {"metadata": {"name": "n1", "labels": labels, "managedFields": managed}, "spec": spec}
    )


def test_settings_count_only_where_colocation_is_on() -> None:
    assert node_metric.render(None) == DEFAULT
    assert node_metric.render(rules(metricReportIntervalSeconds=15)) == DEFAULT
    on = node_metric.render(rules(enable=True, metricReportIntervalSeconds=15))
    assert on["metricCollectPolicy"]["reportIntervalSeconds"] == 15


def test_made_for_a_new_node_even_if_settings_are_doubtful() -> None:
    (step,) = node_metric.planned("n1", None, rules(), doubtful=True).steps
    assert isinstance(step, actions.Apply)
    assert step.resource == resources.NODE_METRICS
    assert step.body["spec"] == DEFAULT


def test_doubtful_settings_leave_what_exists() -> None:
    there = present({"metricCollectPolicy": {"reportIntervalSeconds": 15}})
    assert node_metric.planned("n1", there, rules(), doubtful=True).steps == ()


def test_an_interval_in_shorthand_counts_while_settings_are_doubtful() -> None:
    policy = {"aggregateDurationSeconds": 60, "reportIntervalSeconds": 15}
    ours = {f"f:{name}": {} for name in policy}
    managed = {
        "manager": "koord-manager",
        "operation": "Apply",
        "fieldsV1": {"f:spec": {"f:metricCollectPolicy": ours}},
    }
    there = present({"metricCollectPolicy": policy, "collectionIntervalSeconds": 30}, managed)
    (step,) = node_metric.planned("n1", there, rules(), doubtful=True).steps
    assert isinstance(step, actions.Apply)
    assert step.body["spec"] == {"metricCollectPolicy": {"aggregateDurationSeconds": 60}}
    assert step.body["metadata"]["labels"] == {names.LABEL_CREATED_BY: "koord-manager"}


def test_an_interval_that_a_person_set_is_obeyed() -> None:
    spec = {"metricCollectPolicy": {"aggregateDurationSeconds": 60, "reportIntervalSeconds": 15}}
    there = present(
        spec,
        {
            "manager": "kubectl",
            "fieldsV1": {
                "f:spec": {
                    "f:metricCollectPolicy": {
                        "f:aggregateDurationSeconds": {},
                        "f:reportIntervalSeconds": {},
                    }
                }
            },
        },
    )
    step, told = node_metric.planned("n1", there, rules(), doubtful=False).steps
    assert isinstance(step, actions.Apply)
    assert sorted(step.body["spec"]["metricCollectPolicy"]) == [
        "nodeAggregatePolicy",
        "nodeMemoryCollectPolicy",
    ]
    assert isinstance(told, actions.Tell)


def test_an_interval_in_shorthand_is_not_contradicted() -> None:
    there = present({"collectionIntervalSeconds": 30})
    step, _ = node_metric.planned("n1", there, rules(), doubtful=False).steps
    assert isinstance(step, actions.Apply)
    assert "reportIntervalSeconds" not in step.body["spec"]["metricCollectPolicy"]
