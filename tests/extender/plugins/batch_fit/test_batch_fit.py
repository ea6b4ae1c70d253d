"""What may be lent to batch work, with the figures that people are shown."""

import numpy as np
import pytest

from extender.plugins.batch_fit import batch_fit
from extender.state import lending

BATCH_10 = {"kubernetes.io/batch-cpu": "10000"}


def _filter(picture, raw):
    request, view = picture.request(raw), picture.cluster.view()
    asked, row = picture.pipeline.cycle(request, view), view.rows["n1"]
    refusal = picture.pipeline.filter(asked, view, np.array([row]), 0.0).refusal(0)
    return picture.pipeline.sentence(asked, view, row, refusal, 0.0) if refusal else ""


@pytest.mark.parametrize(
    ("requested", "left", "accepted"),
    [
        pytest.param("100", 8400, False, id="100 of 128 requested lend 8.4, 10 is refused"),
        pytest.param("80", 14400, True, id="80 of 128 requested lend 14.4, 10 is accepted"),
    ],
)
def test_ratio_lends_exactly_the_share_of_what_is_not_requested(
    picture, make, requested, left, accepted
):
    picture.lend(30)
    picture.add(make.node("n1"), make.pod("online", node="n1", requests={"cpu": requested}))
    view = picture.cluster.view()
    assert view.figures["BatchFit"][0, view.rows["n1"]] == left
    sentence = _filter(picture, make.pod("job", band="koord-batch", requests=BATCH_10))
    assert (sentence == "") is accepted
    if not accepted:
        assert sentence == (
            "node may not lend that much cpu to batch work: "
            "asks 10, 8.4 may be lent: (128 - 100) * 30 % - 0 lent"
        )


def test_what_is_lent_already_is_subtracted(picture, make):
    picture.lend(30)
    picture.add(
        make.node("n1"),
        make.pod("online", node="n1", requests={"cpu": "80"}),
        make.pod("first", node="n1", band="koord-batch", requests=BATCH_10),
    )
    assert "asks 10, 4.4 may be lent: (128 - 80) * 30 % - 10 lent" in _filter(
        picture, make.pod("second", band="koord-batch", requests=BATCH_10)
    )


def test_published_capacity_counts_where_no_ratio_is_set(picture, make):
    picture.add(make.node("n1", **{"kubernetes.io/batch-cpu": "9000"}))
    assert "asks 10, 9 may be lent: 9 published - 0 lent" in _filter(
        picture, make.pod("job", band="koord-batch", requests=BATCH_10)
    )


def test_memory_is_compared_as_well(picture, make):
    picture.add(make.node("n1", **{"kubernetes.io/batch-memory": "4Gi"}))
    job = make.pod("job", band="koord-batch", requests={"kubernetes.io/batch-memory": "5Gi"})
    assert _filter(picture, job).startswith(batch_fit.MEMORY.reason)


def test_a_batch_pod_that_was_not_rewritten_borrows_its_native_request(picture, make):
    picture.lend(30)
    picture.add(make.node("n1"), make.pod("online", node="n1", requests={"cpu": "100"}))
    assert _filter(picture, make.pod("job", band="koord-batch", requests={"cpu": "10"}))


def test_online_pods_are_none_of_its_business(picture, make):
    picture.lend(30)
    picture.add(make.node("n1"), make.pod("online", node="n1", requests={"cpu": "128"}))
    assert _filter(picture, make.pod("more", requests={"cpu": "10"})) == ""


def test_reserving_repeats_the_question(picture, make):
    picture.lend(30)
    picture.add(make.node("n1"), make.pod("online", node="n1", requests={"cpu": "80"}))
    plugin, view = batch_fit.BatchFit(), picture.cluster.view()
    row = view.rows["n1"]
    fits = picture.request(make.pod("fits", band="koord-batch", requests=BATCH_10))
    asked = plugin.pre_filter(fits, view)
    assert plugin.reserve(fits, asked, view, row, {}).figures == {"cpu": "10"}
    large = make.pod("large", band="koord-batch", requests={"kubernetes.io/batch-cpu": "14401"})
    much = picture.request(large)
    assert plugin.reserve(much, plugin.pre_filter(much, view), view, row, {}) is batch_fit.CPU
    plain = picture.request(make.pod("plain", requests={"cpu": "1"}))
    assert plugin.pre_filter(plain, view) is None


@pytest.mark.parametrize(
    ("rules", "labels", "annotation", "left"),
    [
        pytest.param({"nodeConfigs": []}, {}, "", 38400, id="cluster strategy"),
        pytest.param(
            {
                "nodeConfigs": [
                    {"nodeSelector": {"matchLabels": {"pool": "a"}}, "overcommitPercent": 50}
                ]
            },
            {"pool": "a"},
            "",
            64000,
            id="first matching exception",
        ),
        pytest.param({}, {}, '{"overcommitPercent": 10}', 12800, id="annotation of the node wins"),
        pytest.param({"enable": False}, {}, "", 0, id="switched off: what is published counts"),
        pytest.param(
            {"enable": False, "nodeConfigs": [{"nodeSelector": {}, "enable": True}]},
            {},
            "",
            0,
            id="no exception switches on what is off for the cluster",
        ),
        pytest.param(
            {"nodeConfigs": [{"nodeSelector": {}, "overcommitPercent": -5}]},
            {},
            "",
            38400,
            id="an exception out of range is not one",
        ),
        pytest.param({"batchCPUThresholdPercent": 10}, {}, "", 12800, id="bounded"),
        pytest.param(
            {
                "nodeConfigs": [
                    {"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}
                ]
            },
            {},
            "",
            38400,
            id="a selector that cannot be read selects nothing",
        ),
        pytest.param({"cpuCalculatePolicy": "usage"}, {}, "", 0, id="another policy"),
        pytest.param({}, {}, "not json", 38400, id="unreadable annotation is ignored"),
    ],
)
def test_policy_of_a_node(picture, make, rules, labels, annotation, left):
    picture.lend(30, **rules)
    notes = {"node.koordinator.sh/colocation-strategy": annotation} if annotation else {}
    picture.add(make.node("n1", labels=labels, annotations=notes))
    view = picture.cluster.view()
    assert view.figures["BatchFit"][0, view.rows["n1"]] == left


def test_a_bound_is_named_in_the_figures(picture, make):
    picture.lend(30, batchCPUThresholdPercent=5)
    picture.add(make.node("n1"))
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    assert "asks 10, 6.4 may be lent: 6.4 at most - 0 lent" in _filter(picture, job)


def test_memory_follows_its_own_policy(picture, make):
    picture.lend(50, memoryCalculatePolicy="overcommitRatio")
    picture.add(make.node("n1"), make.pod("online", node="n1", requests={"memory": "56Gi"}))
    view = picture.cluster.view()
    assert view.figures["BatchFit"][1, view.rows["n1"]] == 100 << 30


@pytest.mark.parametrize("text", ["{", "[]", '{"nodeConfigs": 7}', '{"overcommitPercent": -1}'])
def test_a_strategy_that_cannot_be_used_says_why(text):
    with pytest.raises(ValueError, match="colocation-config"):
        lending.read(text)


def test_there_are_no_figures_where_nothing_is_refused(picture, make):
    picture.lend(30)
    picture.add(make.node("n1"))
    request = picture.request(make.pod("job", band="koord-batch", requests=BATCH_10))
    plugin, view = batch_fit.BatchFit(), picture.cluster.view()
    assert plugin.diagnose(plugin.pre_filter(request, view), view, 0, 0.0).figures == ""


def test_an_annotation_of_a_node_can_switch_lending_off(picture, make):
    picture.lend(30)
    notes = {"node.koordinator.sh/colocation-strategy": '{"enable":false}'}
    picture.add(make.node("n1", annotations=notes))
    view = picture.cluster.view()
    assert view.figures["BatchFit"][0, view.rows["n1"]] == 0


@pytest.mark.parametrize("text", ['{"degradeTimeMinutes": 0}', '{"midCPUThresholdPercent": 101}'])
def test_a_strategy_that_is_not_published_is_not_followed(text):
    with pytest.raises(ValueError, match="must be"):
        lending.read(text)
