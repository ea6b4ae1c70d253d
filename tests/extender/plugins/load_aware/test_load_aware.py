"""Load-aware estimates, filter and score against recorded results and worked examples."""

import dataclasses
import re

import msgspec
import numpy as np
import pytest

from api.kubernetes import core
from api.wire import durations
from extender import settings
from extender.framework import pipeline, views
from extender.informers.nodes import node_metrics
from extender.plugins.load_aware import load_aware
from extender.state import claims, cluster_state, deltas, records
from tests.reference import cases

_SUMS = {
    "prodUsage": "prod_usage",
    "nodeDelta": "node_delta",
    "prodDelta": "prod_delta",
    "nodeEstimated": "node_estimated",
}


def _reason(recorded):
    """The reason of ours for a recorded one."""
    if not recorded:
        return ""
    if recorded == "node(s) nodeMetric expired":
        return load_aware.STALE.reason
    found = re.fullmatch(r"node\(s\) (\S+)( aggregated)? usage exceed threshold", recorded)
    return load_aware.busy(found[1], window=bool(found[2])).reason


def _expected(case):
    return case.expected | {"filter": _reason(case.expected["filter"])}


def _cluster(given, plugin, projector):
    """The picture of one node as the watches would have fed it."""
    cluster = cluster_state.ClusterState((plugin,), ("cpu", "memory"))
    node = projector.node(msgspec.convert(given["node"], core.Node))
    cluster.apply(deltas.NodeDelta(node.name, None, node))
    if "nodeMetric" in given:
        raw = msgspec.convert(given["nodeMetric"], node_metrics.NodeMetric)
        report = node_metrics.Reader(plugin.universe).report(raw)
        cluster.apply(deltas.ReportDelta(node.name, None, report))
    for entry in given.get("assigned") or ():
        pod = projector.pod(msgspec.convert(entry["pod"], core.Pod))
        if pod is None:
            continue
        if pod.assigned_at < 0:
            cached = durations.timestamp(entry["cachedAt"])
            pod = msgspec.structs.replace(pod, assigned_at=cached)
        pod = msgspec.structs.replace(pod, node=node.name)
        claim = claims.Claim(pod.uid, claims.ClaimKind.BOUND, pod.node, pod)
        cluster.apply(deltas.ClaimDelta(pod.uid, None, claim))
    return cluster


def _answer(case):
    given, out = case.given, case.expected
    arguments = settings.LoadAwareSettings.model_validate(given["args"]).arguments()
    plugin, projector = load_aware.LoadAware(arguments), records.Projector()
    cluster = _cluster(given, plugin, projector)
    incoming = msgspec.convert(given["pod"], core.Pod)
    demand = projector.requirements(incoming)
    request = views.PodInfo(incoming.metadata.key, incoming.metadata.uid, demand)
    now, view = durations.timestamp(given["now"]), cluster.view()
    asked, rows = plugin.pre_filter(request, view), pipeline.ROW
    verdict, score = plugin.filter(asked, view, rows, now), plugin.score(asked, view, rows, now)
    code = int(verdict.codes[0]) if verdict else 0
    amounts = dict(zip(plugin.universe, plugin.estimate(demand), strict=True))
    answer = {
        "estimate": {name: amounts.get(name, 0) for name in out["estimate"]},
        "filter": verdict.statuses[code - 1].reason if code else "",
        "score": int(score.values[0]) if score else 0,
    }
    sums = plugin.sums(view.node(0))
    if sums is not None:
        answer["state"] = {}
        for key, attribute in _SUMS.items():
            found = dict(zip(plugin.universe, getattr(sums, attribute), strict=True))
            answer["state"][key] = {name: found.get(name, 0) for name in out["state"][key]}
    return answer


@pytest.mark.vectors
def test_every_recorded_result_is_reproduced():
    assert cases.check("loadaware", _answer, _expected, {})[""]


def _judge(picture, raw, now=1782907200.0):
    request, view = picture.request(raw), picture.cluster.view()
    asked, row = picture.pipeline.cycle(request, view), view.rows["n1"]
    refusal = picture.pipeline.filter(asked, view, np.array([row]), now).refusal(0)
    return picture.pipeline.sentence(asked, view, row, refusal, now) if refusal else ""


def test_an_old_report_is_named_with_its_age(picture, make):
    picture.add(make.node("n1"), make.metric("n1"))
    assert _judge(picture, make.pod("p"), now=1782907200.0 + 240) == (
        "node load report is too old: the report should have been renewed 60 s ago"
    )


def test_a_report_that_was_never_filled_in_is_told_as_absent(picture, make):
    unfilled = make.metric("n1")
    del unfilled["status"]
    picture.add(make.node("n1"), unfilled)
    assert _judge(picture, make.pod("p")) == (
        "node load report is too old: its agent has not reported yet"
    )


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        pytest.param("", True, id="cluster's thresholds"),
        pytest.param('{"usageThresholds":{"cpu":90}}', False, id="the node's own"),
        pytest.param('{"usageThresholds":{"cpu":"x"}}', True, id="no number"),
        pytest.param('{"usageThresholds":[1]}', True, id="no object"),
        pytest.param("{", True, id="not JSON"),
        pytest.param(
            '{"aggregatedUsage":{"usageThresholds":{"cpu":1},"usageAggregationType":"p95"}}',
            True,
            id="a window",
        ),
        pytest.param(
            '{"aggregatedUsage":{"usageThresholds":{"cpu":1},"usageAggregationType":"p95",'
            '"usageAggregatedDuration":"soon"}}',
            True,
            id="a window of no duration: the cluster's",
        ),
    ],
)
def test_a_node_may_have_thresholds_of_its_own(picture, make, text, refused):
    notes = {"scheduling.koordinator.sh/usage-thresholds": text} if text else {}
    picture.add(make.node("n1", annotations=notes), make.metric("n1", cpu="100"))
    assert bool(_judge(picture, make.pod("p"))) is refused


def test_without_any_weight_there_is_no_preference(picture, make):
    picture.add(make.node("n1"), make.metric("n1"))
    whole = settings.LoadAwareSettings().arguments()
    plugin = load_aware.LoadAware(dataclasses.replace(whole, weights={}))
    request, view = picture.request(make.pod("p")), picture.cluster.view()
    asked = plugin.pre_filter(request, view)
    assert plugin.score(asked, view, pipeline.ROW, 1782907200.0) is None


def test_daemon_pods_are_not_refused(picture, make):
    picture.add(make.node("n1"), make.metric("n1", cpu="128"))
    assert _judge(picture, make.pod("p"))
    owner = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "u"}]}
    assert _judge(picture, make.pod("d", **owner)) == ""


def _finding(picture, raw, now=1782907200.0):
    request, view = picture.request(raw), picture.cluster.view()
    plugin = load_aware.LoadAware(settings.LoadAwareSettings().arguments())
    row = view.rows["n1"]
    asked, rows = plugin.pre_filter(request, view), np.array([row])
    return plugin.diagnose(asked, view, row, now), plugin.shortage(asked, view, rows, now)[0]


def test_a_near_miss_says_what_would_help(picture, make):
    # 65 % of 128 cores are 83.2, up to 83.839 by rounding; 0.85 of 4 cores are expected on top.
    picture.add(make.node("n1"), make.metric("n1", cpu="82"))
    found, shortage = _finding(picture, make.pod("p", requests={"cpu": "4"}))
    assert found.figures == ("cpu: 82 of 128 is used or expected, 3.4 more would pass 65 %")
    assert found.helps == (
        "1.561 cores less in use on n1",
        "a pod that is expected to use 1.839 cores or less",
        "a higher threshold (scheduling.koordinator.sh/usage-thresholds on the node)",
    )
    assert shortage == pytest.approx(1561 / 3400)


def test_a_full_node_is_no_place_for_a_smaller_pod_either(picture, make):
    picture.add(make.node("n1"), make.metric("n1", cpu="90", memory="250Gi"))
    found, shortage = _finding(picture, make.pod("p", requests={"cpu": "4"}))
    assert found.figures == (
        "cpu: 90 of 128 is used or expected, 3.4 more would pass 65 %; "
        "memory: 250.0 GiB of 256.0 GiB is used or expected, 200.0 MiB more would pass 95 %"
    )
    assert [text for text in found.helps if "pod" in text] == []
    assert shortage > 1


def test_an_old_report_asks_for_the_agent(picture, make):
    picture.add(make.node("n1"), make.metric("n1"))
    found, shortage = _finding(picture, make.pod("p"), now=1782907200.0 + 240)
    assert found.helps == ("a report from the agent of n1: look whether it runs there",)
    assert shortage == 1
    request, view = picture.request(make.pod("p")), picture.cluster.view()
    lenient = settings.LoadAwareSettings(enable_schedule_when_node_metrics_expired=True)
    plugin = load_aware.LoadAware(lenient.arguments())
    asked = plugin.pre_filter(request, view)
    verdict = plugin.filter(asked, view, pipeline.ROW, 1782907200.0 + 240)
    assert not verdict.codes.any()


def test_of_two_full_resources_the_first_by_name_is_reported(picture, make):
    picture.add(make.node("n1"), make.metric("n1", cpu="128", memory="256Gi"))
    assert _judge(picture, make.pod("p")).startswith(load_aware.busy("cpu").reason)
    picture.add(make.metric("n1", cpu="1", memory="256Gi"))
    assert _judge(picture, make.pod("p")).startswith(load_aware.busy("memory").reason)


def test_a_report_that_was_read_for_other_resources_still_counts(picture, make):
    picture.add(make.node("n1"), make.metric("n1", cpu="100"))
    wider = settings.LoadAwareSettings(supported_resources=("a", "z")).arguments()
    plugin = load_aware.LoadAware(wider)
    facts = picture.cluster.view().node(0)
    plain = load_aware.LoadAware(settings.LoadAwareSettings().arguments())
    assert (plugin.universe, plain.universe) == (("a", "cpu", "memory", "z"), ("cpu", "memory"))
    found, _ = plugin.node(facts)
    assert found[3:5] == plain.node(facts)[0][2:4], "room for prod pods, cpu and memory"
