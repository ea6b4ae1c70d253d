"""Readers of the tools over objects that somebody wrote to break them."""

import io
import json
import os
import random

import msgspec
import orjson
import pytest
from rich import console

from agent.report import scorecard
from api import names, resources
from api.koordinator.metrics import nodemetric
from api.kubernetes import core
from cli import reading
from cli.commands import doctor
from cli.doctor import node_strategies, support_bundle, survey
from cli.doctor.checkup import checks
from cli.explain import node_story, stories
from cli.explain.pod import pod_facts, pod_story
from cli.install import removal
from cli.output import terminal
from cli.view import overview, overview_reader, scorecards, tables
from tests import builders
from tests.hostile import BOTTOMLESS, DEEP, broken, nested
from tests.planes.install import checkups

# The same ones each time; `make fuzz` sends a tenth of KOORD_FUZZ, others each time.
ROUNDS = int(os.environ.get("KOORD_FUZZ", "4000")) // 10
SALT = str(os.getpid()) if "KOORD_FUZZ" in os.environ else ""
pytestmark = pytest.mark.timeout(max(60, ROUNDS // 20))


def shown(lines, capsys):
    terminal.lines(lines)
    text = capsys.readouterr().out
    assert all(char.isprintable() or char == "\n" for char in text)
    return text


PLACEMENT = {"v": 1, "at": "t", "reasons": ["a"], "granted": {"p": {"cpu": "1"}}}
CHANGES = {"profiles": {"night": {"labels": {"a": [None, "b"]}}}, "resources": ["x"], "tree": "t"}
GROUP = {
    "plugin": "p", "reason": "r", "count": 7, "nodes": ["n1"],
    "nearest": {"node": "n3", "figures": "cpu: 1 of 2", "wouldHelp": ["one", "two"]},
}  # fmt: skip
EVENT = {
    "reason": "NodesRefused", "message": "m", "reportingComponent": "koord-x",
    "involvedObject": {"kind": "Job", "name": "p"},
}  # fmt: skip
BATCH = {names.BATCH_CPU: "2k", names.BATCH_MEMORY: "1Gi"}


def a_pod():
    notes = {
        names.PLACEMENT: json.dumps(PLACEMENT),
        names.ANNOTATION_CHANGES: json.dumps(CHANGES),
        names.ANNOTATION_PROFILES: "night",
    }
    raw = builders.a_pod(
        "p", annotations=notes, labels={names.LABEL_QOS: "BE"}, requests=BATCH, gates=("g",)
    )
    raw["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": "no"}]
    return raw


def of_a_pod():
    return {
        "pod": a_pod(),
        "events": [EVENT],
        "creations": [EVENT],
        "reviews": {"answers": [{"result": "refused", "reasons": ["r"], "at": "t"}]},
        "explanation": {"status": {"failedMessage": "m", "lastUpdateTime": "t"}},
        "page": {"present": {"asked": 7, "passed": 0, "groups": [GROUP]}},
        "lending": {"node": "n", "sentence": "lends"},
    }


@pytest.mark.parametrize("node", ["", "n1"], ids=["waits", "placed"])
def test_no_pod_breaks_its_story(node, capsys):
    rng, seen = random.Random(f"pod {node}{SALT}"), set()
    base = of_a_pod()
    if node:
        base["pod"]["spec"]["nodeName"] = node
    for _ in range(ROUNDS):
        facts = pod_facts.Facts("default/p", **broken(base, rng))
        pod_facts.nearest(facts)
        pod_facts.wanted(facts)
        told = pod_story.told(facts)
        seen |= set(shown(stories.lines(told), capsys).splitlines())
        terminal.document(stories.document(told))
        json.loads(capsys.readouterr().out)
    assert any("cannot be told" in line for line in seen), "the fuzzer reaches the net"


@pytest.mark.parametrize(
    "written",
    ["[1]", "7", '"x"', "null", "{", DEEP, json.dumps(nested(60)), '{"granted": [1]}',
     '{"reasons": 5}', '{"granted": {"p": 7}}', "x" * 200_000],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_whatever_stands_in_the_placement_the_pod_is_where_it_is(written, capsys):
    raw = builders.a_pod("p", node="n1", annotations={names.PLACEMENT: written})
    told = pod_story.told(pod_facts.Facts("default/p", raw))
    text = shown(stories.lines(told), capsys)
    assert "Pod default/p is on node n1." in text
    assert "another scheduler placed it; the extender did not." in text
    assert f"annotation {names.PLACEMENT}" in text


def test_no_control_character_of_a_placement_reaches_the_terminal(capsys):
    written = json.dumps(PLACEMENT | {"at": "\x1b]0;owned\x07", "reasons": ["\x1b[2J\u202e"]})
    raw = builders.a_pod("p", node="n1", annotations={names.PLACEMENT: written})
    told = pod_story.told(pod_facts.Facts("default/p", raw))
    assert "\\x1b]0;owned\\x07" in shown(stories.lines(told), capsys)


def test_no_node_breaks_its_story(capsys):
    rng = random.Random("node" + SALT)
    term = {"name": "t", "value": 5}
    resource = {"resource": names.BATCH_CPU, "calculated": 5, "offered": 5, "terms": [term]}
    base = {
        "node": builders.a_node("n1", extra=BATCH),
        "metric": builders.a_node_metric("n1", update_time=10.0),
        "lending": {"sentence": "s", "resources": [resource], "report_age": 3.0, "written": {}},
        "load": {"nodeDelta": {"cpu": 5}},
        "events": [EVENT],
    }
    for _ in range(ROUNDS):
        found = broken(base, rng)
        facts = node_story.Facts(
            "n1", 20.0, node_story.read_node(found.get("node")), found.get("node"),
            lending=found.get("lending"), metric=node_story.read_metric(found.get("metric")),
            load=found.get("load"), events=found.get("events"),
        )  # fmt: skip
        told = node_story.told(facts)
        shown(stories.lines(told), capsys)
        terminal.document(stories.document(told))
        json.loads(capsys.readouterr().out)


def painted(taken):
    screen = console.Console(file=io.StringIO(), force_terminal=True, width=150, color_system=None)
    with screen.capture() as captured:
        screen.print(tables.render(taken, "koord"))
    return captured.get()


MAPS = overview.Maps({"agent": "off", "agent.nodes.x": DEEP}, {"koord-scheduler-config": DEEP})


def test_no_object_breaks_the_picture(capsys):
    rng, left_out = random.Random("picture" + SALT), 0
    base = {
        "node": builders.a_node("n1", extra=BATCH),
        "pod": a_pod(),
        "placed": builders.a_pod("q", node="n1"),
        "metric": builders.a_node_metric("n1"),
    }
    for _ in range(ROUNDS):
        found, odd = {key: broken(value, rng) for key, value in base.items()}, []
        nodes = list(overview_reader.each([found["node"]], core.Node, odd))
        pods = list(overview_reader.each([found["pod"], found["placed"]], core.Pod, odd))
        metrics = {"n1": overview_reader.read_metric(found["metric"])}
        taken = overview.take(nodes, pods, metrics, MAPS, odd)
        left_out += len(taken.unreadable)
        shown(tables.lines(taken), capsys)
        assert "\x1b]" not in painted(taken)
        terminal.document(overview.as_json(taken))
        json.loads(capsys.readouterr().out)
    assert left_out > ROUNDS / 20


def test_one_object_among_a_thousand_is_named_and_changes_no_other():
    pods = [builders.a_pod(f"p{number}", node="n1", cpu="10m") for number in range(999)]
    poison = builders.a_pod("poison", node="n1", requests={"cpu": "0x10"})

    def taken(items):
        odd = []
        return overview.take(
            list(overview_reader.each([builders.a_node("n1", cpu="64")], core.Node, odd)),
            list(overview_reader.each(items, core.Pod, odd)),
            {"n1": nodemetric.NodeMetric()}, overview.Maps(), odd,
        )  # fmt: skip

    sound, ill = taken(pods), taken([*pods[:500], poison, *pods[500:]])
    assert sound.nodes == ill.nodes
    assert sound.running == ill.running == 999
    assert ill.unreadable == ("Pod default/poison",)


def test_markup_in_a_scheduler_message_is_text():
    waiting = builders.a_pod("p")
    waiting["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "message": "[red]no[/foo] \x1b[2J"}
    ]
    taken = overview.take([], [msgspec.convert(waiting, core.Pod)], {})
    assert "[red]no[/foo] \\x1b[2J" in painted(taken)


FIELDS = (
    "crds", "deployments", "daemon_sets", "nodes", "node_metrics", "node_slos", "config_maps",
    "leases", "webhooks", "endpoints", "namespaces", "profiles",
)  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_no_object_breaks_a_checkup(field, capsys, healthy):
    rng = random.Random(field + SALT)
    for _ in range(ROUNDS // 20):
        value = broken(getattr(healthy, field), rng)
        found = checks.examine(checkups.replaced(healthy, {field: value}))
        assert {finding.check.partition(".")[0] for finding in found} >= {"clock", "objects"}
        shown(doctor.lines(found), capsys)


@pytest.fixture(scope="module")
def healthy():
    return checkups.healthy()


def test_objects_that_cannot_be_read_are_named_once_and_left_out():
    surveyor = survey.Surveyor(None, None, survey.Options(), lambda _text: None)
    pods = [builders.a_pod(f"p{number}") for number in range(20)]
    pods[7]["spec"]["containers"] = {"not": "a list"}
    pods[9]["spec"]["x"] = orjson.Fragment(BOTTOMLESS)
    page = orjson.dumps({"metadata": {}, "items": pods})
    found = list(surveyor.each(resources.PODS, page, survey.pod))
    assert [pod.name for pod in found] == [f"p{n}" for n in range(20) if n not in (7, 9)]
    assert surveyor.unreadable == ["Pod default/p7", "Pod default/p9"]


def test_no_object_breaks_an_uninstallation(healthy):
    rng = random.Random("removal" + SALT)
    base = {"nodes": [dict(node) for node in healthy.nodes]}
    for entry in base["nodes"]:
        entry["metadata"]["labels"] = {"koord.sh/x": "1"}
        entry["metadata"]["managedFields"] = [
            {
                "manager": "koord-agent",
                "fieldsV1": {"f:metadata": {"f:labels": {"f:koord.sh/x": {}}}},
            }
        ]
    parts = ("workloads", "running", "leases", "registrations", "secrets", "reports", "pods")
    empty = dict.fromkeys((*parts, "classes"), ())
    planned = 0
    for _ in range(ROUNDS):
        nodes = reading.either(
            [], lambda: [n for n in broken(base, rng)["nodes"] if isinstance(n, dict)]
        )
        plan = removal.plan(removal.Inventory(1.0, 99.0, nodes=nodes, **empty), removal.Options())
        assert all(step.sentence() for step in plan.steps)
        planned += bool(plan.steps)
    assert planned > ROUNDS / 2


def test_no_scorecard_of_a_node_breaks_the_sum(capsys):
    rng, refused = random.Random("scores" + SALT), 0
    day = scorecard.Day("2026-11-20")
    day.tick(scorecard.Second(7200.0, over=True))
    day.count(scorecard.About("s", "n", "LS"), scorecard.WRITTEN)
    base = {"days": [day.as_json()]}
    for _ in range(ROUNDS):
        text = json.dumps(broken(base, rng))
        try:
            days = scorecards.read(text)
        except reading.UNREADABLE:
            refused += 1
            continue
        shown(scorecards.lines(scorecards.together([days])), capsys)
    assert 0 < refused < ROUNDS


@pytest.mark.parametrize(
    "written", ["[1]", "{", DEEP, '{"a": 1}', '{"a": {"verdict": "x", "how": 1}}', "null"],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_a_table_of_strategies_is_read_or_refused(written):
    with pytest.raises(ValueError, match=r"."):
        node_strategies.read(written)


def test_a_bundle_holds_what_it_can(healthy):
    box = support_bundle.Box()
    box.objects("pods", [builders.a_pod("p"), {"metadata": nested(2000)}, builders.a_pod("q")])
    box.text("log", b"time=1 \x1b[2J\xff\nnext \xe2\x80\xae")
    text = box.files["pods"].decode()
    assert "name: p" in text
    assert "name: q" in text
    assert len(box.problems) == 1
    assert box.files["log"].decode().splitlines() == ["time=1 \\x1b[2J\ufffd", "next \\u202e"]
    assert orjson.dumps(box.problems)
