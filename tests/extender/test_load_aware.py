"""Load-aware estimates, filter and score against recorded results and worked examples."""

import dataclasses
import gzip
import json
from pathlib import Path

import msgspec
import pytest

from api import core, durations
from extender import deltas, framework, records, reports, settings, state
from extender.plugins import load_aware

_FILE = Path(__file__).parents[1] / "reference" / "loadaware.jsonl.gz"
_MESSAGES = {
    "": "",
    "node(s) nodeMetric expired": load_aware.STALE.text,
}


def _cases():
    with gzip.open(_FILE, "rt") as lines:
        return [json.loads(line) for line in lines]


def _seen(filter_text):
    if filter_text in _MESSAGES:
        return _MESSAGES[filter_text]
    return load_aware.BUSY_WINDOW.text if "aggregated" in filter_text else load_aware.BUSY.text


def _run(case):
    given = case["in"]
    plugin = load_aware.LoadAware(
        settings.LoadAwareSettings.model_validate(given["args"]).arguments()
    )
    projector = records.Projector()
    reader = reports.Reader(plugin.universe)
    cluster = state.ClusterState((plugin,), ("cpu", "memory"))
    node = projector.node(msgspec.convert(given["node"], core.Node))
    cluster.apply(deltas.NodeDelta(node.name, None, node))
    if "nodeMetric" in given:
        report = reader.report(msgspec.convert(given["nodeMetric"], reports.NodeMetric))
        cluster.apply(deltas.ReportDelta(node.name, None, report))
    for entry in given["assigned"]:
        pod = projector.pod(msgspec.convert(entry["pod"], core.Pod))
        if pod is None:
            continue
        if pod.assigned_at < 0:
            cached = durations.timestamp(entry["cachedAt"])
            pod = msgspec.structs.replace(pod, assigned_at=cached)
        pod = msgspec.structs.replace(pod, node=node.name)
        cluster.apply(deltas.PodDelta(pod.uid, None, pod))
    incoming = msgspec.convert(given["pod"], core.Pod)
    request = framework.Request(
        incoming.metadata.key, incoming.metadata.uid, projector.demand(incoming)
    )
    now = durations.timestamp(given["now"])
    view = cluster.view()
    row = view.rows[node.name]
    verdict = plugin.filter(request, view, now)
    code = int(verdict.codes[row]) if verdict else 0
    score = plugin.score(request, view, now)
    facts = view.facts(row)
    sums = plugin.sums(facts)
    return {
        "estimate": dict(zip(plugin.universe, plugin.estimate(request.demand), strict=True)),
        "filter": verdict.reasons[code - 1].text if code else "",
        "score": int(score.values[row]) if score else 0,
        "sums": sums,
        "universe": plugin.universe,
    }


def test_every_recorded_result_is_reproduced():
    wrong = []
    cases = _cases()
    assert len(cases) == 849
    for number, case in enumerate(cases):
        found, out = _run(case), case["out"]
        estimate = {name: found["estimate"].get(name, 0) for name in out["estimate"]}
        problems = {}
        if estimate != out["estimate"]:
            problems["estimate"] = (estimate, out["estimate"])
        if found["filter"] != _seen(out["filter"]):
            problems["filter"] = (found["filter"], out["filter"])
        if found["score"] != out["score"]:
            problems["score"] = (found["score"], out["score"])
        for key, attribute in (
            ("prodUsage", "prod_usage"),
            ("nodeDelta", "node_delta"),
            ("prodDelta", "prod_delta"),
            ("nodeEstimated", "node_estimated"),
        ):
            if "state" in out:
                sums = dict(zip(found["universe"], getattr(found["sums"], attribute), strict=True))
                expected = out["state"][key]
                if {name: sums.get(name, 0) for name in expected} != expected:
                    problems[key] = (sums, expected)
        if problems:
            wrong.append((number, problems))
    assert not wrong, f"{len(wrong)} differ, first: {wrong[:3]}"


def _judge(picture, raw, now=1782907200.0):
    request, view = picture.request(raw), picture.cluster.view()
    row = view.rows["n1"]
    refusal = picture.pipeline.filter(request, view, now).refusal(row)
    return picture.pipeline.sentence(request, view, row, refusal, now) if refusal else ""


def test_an_old_report_is_named_with_its_age(picture, make):
    picture.add(make.node("n1"), make.metric("n1"))
    assert _judge(picture, make.pod("p"), now=1782907200.0 + 240) == (
        "node load report is too old: the report should have been renewed 60 s ago"
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
    assert plugin.score(request, view, 1782907200.0) is None


def test_daemon_pods_are_not_refused(picture, make):
    picture.add(make.node("n1"), make.metric("n1", cpu="128"))
    assert _judge(picture, make.pod("p"))
    owner = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "u"}]}
    assert _judge(picture, make.pod("d", **owner)) == ""
