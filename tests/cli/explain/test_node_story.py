"""The story of a node: each term of the formula, what is taken, and how busy it is."""

import json

import msgspec
import pytest

from api import names
from api.kubernetes import core
from api.wire import durations
from cli.explain import lending_breakdown, node_story, stories
from cli.explain.pod import batch_capacity
from domain.devices.requests import accelerators
from process.runtime import clock as clocks
from tests import builders

NOW = 1782907200.0
RATIO = f"{names.BATCH_CPU} by policy overcommitRatio: 128"
GI = 1 << 30


def resource(name=names.BATCH_CPU, **more):
    terms = [{"name": "allocatable", "value": 128_000}, {"name": "requested", "value": -80_000}]
    return {
        "resource": name,
        "policy": "overcommitRatio",
        "terms": terms,
        "percent": 30,
        "calculated": 14_400,
        "offered": 14_400,
    } | more


@pytest.mark.parametrize(
    ("given", "sentences"),
    [
        pytest.param(
            resource(),
            [
                (f"{RATIO} allocatable - 80 requested = 48; "
                "30 % of that, that is 14.4 cores.")
            ],
            id="a share",
        ),
        pytest.param(
            resource(percent=None, policy="usage", calculated=48_000, offered=48_000),
            [
                f"{names.BATCH_CPU} by policy usage: 128 allocatable - 80 requested = 48 cores."
            ],
            id="all of it",
        ),
        pytest.param(
            resource(percent=None, capped=True, cap=6400, calculated=6400, offered=9000,
                     normalized=1.5, third_party=600),
            [
                (f"{RATIO} allocatable - 80 requested = 48; "
                "no more than 6.4 by its threshold, that is 6.4 cores."),
                "This is multiplied by 1.5, because its cpu is that much faster.",
                "0.6 of it are handed out by others already.",
                "It offers 9 cores.",
            ],
            id="capped, faster, shared",
        ),
        pytest.param(
            resource(names.BATCH_MEMORY, percent=None, calculated=GI, offered=GI,
                     terms=[{"name": "capacity", "value": GI}]),
            [f"{names.BATCH_MEMORY} by policy overcommitRatio: 1.0 GiB capacity."],
            id="one term",
        ),
        pytest.param(
            resource(names.MID_CPU, terms=[{"name": "x", "value": 0}], calculated=0, offered=0),
            [],
            id="nothing",
        ),
    ],
)  # fmt: skip
def test_the_formula(given, sentences):
    assert list(node_story.formula(given)) == sentences


def facts(**more):
    node = msgspec.convert(builders.a_node("n1", cpu="128"), core.Node)
    return node_story.Facts("n1", NOW, node, **more)


def text(found):
    return "\n".join(stories.lines(found))


def test_a_node_that_lends():
    lending = {
        "state": "lends",
        "sentence": "lends 14.4 cores",
        "resources": [resource()],
        "report_age": 12.4,
        "normalization": {"text": "1.20", "why": "cpu model x", "problem": ""},
        "amplification": {"text": "", "why": "", "problem": "no basis"},
        "written": {"news": ["batch-cpu: the refresh is due"], "kept": "too small a change"},
    }
    offer = batch_capacity.Offer(
        "n1", {"cpu": 14_400, "memory": GI}, {"cpu": 16_000, "memory": 0}, {}
    )
    found = node_story.told(facts(lending=lending, offer=offer))
    said = text(found)
    assert found.verdict == "Node n1 lends 14.4 cores."
    assert "The figures are from the agent's report of 12 s ago." in said
    assert "Its cpu normalization is 1.20: cpu model x." in said
    assert "Its cpu amplification cannot be said: no basis." in said
    assert "Written now: batch-cpu: the refresh is due." in said
    assert "What stands on the node differs: too small a change." in said
    assert "batch pods hold 16; that is 1.6 more than it lends now." in said
    assert "batch pods hold 0; 1.0 GiB are left." in said
    assert "Its agent has not reported what it uses." in said
    assert found.helps == ()


@pytest.mark.parametrize(
    ("reason", "help_"),
    [
        ("the agent has not reported yet", "look whether it runs there"),
        ("colocation is off", "colocation switched on"),
        ("something else", ""),
    ],
)
def test_a_node_that_lends_nothing_says_what_would_help(reason, help_):
    lending = {"state": "withdrawn", "reason": reason, "sentence": f"lends nothing: {reason}"}
    found = node_story.told(facts(lending=lending))
    assert found.verdict == f"Node n1 lends nothing: {reason}."
    assert help_ in " ".join(found.helps)
    assert bool(found.helps) is bool(help_)


def test_how_busy_it_is():
    metric = node_story.read_metric(
        {
            "metadata": {"name": "n1"},
            "status": {
                "updateTime": durations.moment(NOW - 30),
                "nodeMetric": {"nodeUsage": {"resources": {"cpu": "64", "memory": "4Gi"}}},
            },
        }
    )
    load = {"nodeDelta": {"cpu": 1700, "memory": 0}}
    event = {"reason": "LendingStarted", "message": "lends", "reportingComponent": "koord-manager"}
    other = event | {"reason": "Other", "reportingComponent": "kubelet"}
    said = text(node_story.told(facts(metric=metric, load=load, events=[event, other])))
    assert "64 of 128 cores are in use (50 %), 1.7 more are expected of pods" in said
    assert "4.0 GiB of 64.0 GiB of memory are in use (6 %)." in said
    assert "That was measured 30 s ago." in said
    assert "LendingStarted: lends." in said
    assert "Other" not in said
    assert node_story.read_metric({"status": {"updateTime": "soon"}}) is None


def test_without_any_source_the_node_itself_speaks():
    raw = builders.a_node("n1", extra={names.BATCH_CPU: "9k"})
    notes = {names.ANNOTATION_USAGE_THRESHOLDS: '{"usageThresholds":{"cpu":80}}'}
    raw["metadata"]["annotations"] = notes
    node = msgspec.convert(raw, core.Node)
    found = node_story.told(node_story.Facts("n1", NOW, node))
    assert found.verdict == "Node n1 publishes 9 cores for batch work."


@pytest.mark.parametrize("enable", [True, False])
def test_devices_are_not_called_gone_where_no_manager_can_be_asked(enable):
    offered = {"cpu": "8", "memory": "16Gi", names.FPGA: "100"}
    node = {
        "metadata": {"name": "a", "annotations": {names.ANNOTATION_DEVICES_OFFERED: "true"}},
        "status": {"capacity": offered, "allocatable": offered},
    }
    settings = {"colocation-config": json.dumps({"enable": enable})}
    clock = clocks.ManualClock(0.0)
    told = lending_breakdown.explained(node, (), None, settings, clock)
    assert told["devices"].keys().isdisjoint(accelerators.RESOURCES)
    assert not any(names.FPGA in text for text in told["written"]["news"])
