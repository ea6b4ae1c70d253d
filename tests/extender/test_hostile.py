"""One object that somebody wrote to break the extender changes nothing for all others."""

import copy
import json
import os
import random
import re
import time

import msgspec
import numpy as np
import pytest

from api import names
from api.kubernetes import core
from extender.explain import explanation_status, pages
from extender.informers import elastic_quotas
from extender.informers.nodes import node_metrics
from extender.state import lending, records
from kube.client import wire
from tests import held_memory
from tests.extender.scoring import deciding
from tests.hostile import DEEP, HOSTILE, broken, nested

# A few hundred the same ones each time; `make fuzz` sends KOORD_FUZZ of them, others each time.
ROUNDS = int(os.environ.get("KOORD_FUZZ", "300"))
SALT = str(os.getpid()) if "KOORD_FUZZ" in os.environ else ""
pytestmark = pytest.mark.timeout(max(60, ROUNDS // 50))
SLOWEST_SECONDS = 0.02
NOW = 1782907200.0
NOTES = {
    names.ANNOTATION_USAGE_THRESHOLDS: json.dumps({"usageThresholds": {"cpu": 60}}),
    names.ANNOTATION_COLOCATION_STRATEGY: json.dumps({"enable": True, "overcommitPercent": 50}),
    names.ANNOTATION_RAW_ALLOCATABLE: json.dumps({"cpu": "64"}),
    names.ANNOTATION_STRATEGIES: json.dumps({"cpu-suppress": {"verdict": "works", "how": "x"}}),
}
FACTORS = {names.ANNOTATION_LOAD_SCALING_FACTORS: json.dumps({"cpu": 80})}
EXPLANATION = {
    "metadata": {"name": "x", "namespace": "default", "uid": "x", "labels": {}},
    "spec": {"questionObjectKey": "default/p", "ttl": "1h"},
    "status": {"schedulable": False, "failedMessage": "m", "detailedExplanation": []},
}
QUOTA = {
    "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
    "kind": "ElasticQuota",
    "metadata": {
        "name": "team",
        "namespace": "default",
        "uid": "q",
        "labels": {names.LABEL_QUOTA_PARENT: "root"},
        "annotations": {
            names.ANNOTATION_QUOTA_WEIGHT: json.dumps({"cpu": "10"}),
            names.ANNOTATION_QUOTA_NAMESPACES: json.dumps(["default"]),
        },
    },
    "spec": {"min": {"cpu": "10"}, "max": {"cpu": "20"}},
}
SETTINGS = {"enable": True, "nodeConfigs": [{"name": "a", "nodeSelector": {"matchLabels": {}}}]}


def annotated(raw, rng):
    """Replace what one annotation says; the API server lets any text pass."""
    found = copy.deepcopy(raw)
    notes = found["metadata"].get("annotations")
    for name in list(notes or ()):
        if rng.random() < 0.5:
            value = rng.choice(HOSTILE)
            inner = json.loads(notes[name])
            if isinstance(inner, dict) and rng.random() < 0.5:
                value = broken(inner, rng)
            notes[name] = value if isinstance(value, str) else json.dumps(value)
    return found


def anywhere(raw, rng):
    """Replace anything but the metadata, which an API server always fills in as it should be."""
    found = broken({key: part for key, part in raw.items() if key != "metadata"}, rng)
    return {**found, "metadata": annotated(raw, rng)["metadata"]}


def written(raw):
    """Return an object as bytes that an API server can send: it holds no NaN and no half pairs."""
    text = json.dumps(raw).replace("NaN", "null").replace("-Infinity", "0").replace("Infinity", "0")
    return re.sub(r"(?<!\\)((?:\\\\)*)\\ud800", r"\1?", text).encode()


def objects(make):
    return {
        "pods": make.pod("p", node="n1", requests={"cpu": "4"}, annotations=dict(FACTORS)),
        "nodes": make.node("n1", annotations=dict(NOTES), **{names.BATCH_CPU: "4000"}),
        "nodemetrics": make.metric("n1", pods=("p",)),
        "scheduleexplanations": EXPLANATION,
        "elasticquotas": QUOTA,
    }


def readers():
    projector, report = records.Projector(), node_metrics.Reader(("cpu", "memory"))
    return {
        "pods": wire.Reader(core.Pod, projector.pod),
        "nodes": wire.Reader(core.Node, projector.node),
        "nodemetrics": wire.Reader(node_metrics.NodeMetric, report.named),
        "scheduleexplanations": wire.Reader(dict, explanation_status.question),
        "elasticquotas": wire.Reader(dict, elastic_quotas.Reader().read),
    }


@pytest.mark.parametrize("plural", sorted(readers()))
@pytest.mark.parametrize("change", [anywhere, annotated], ids=["anywhere", "annotations"])
def test_no_object_breaks_its_reader_or_holds_it_up(make, plural, change):
    rng, reader = random.Random(plural + SALT), readers()[plural]
    base, slowest, told = objects(make)[plural], 0.0, 0
    for _ in range(ROUNDS):
        raw = change(base, rng)
        data = written({"metadata": {"resourceVersion": "1"}, "items": [raw]})
        took = []
        for _ in range(2):
            started = time.thread_time()
            _, (item,) = reader.page(data)
            took.append(time.thread_time() - started)
        slowest = max(slowest, min(took))
        told += bool(item.flaw)
        assert item.meta.key.endswith(base["metadata"]["name"])
        if change is annotated:
            assert not item.flaw, "what an annotation says makes nothing unreadable"
    assert slowest < SLOWEST_SECONDS
    # An explanation that cannot be read asks nothing; all others are named.
    assert told or change is annotated or plural == "scheduleexplanations"


def fed(picture, raw):
    """Feed an object as a watch would: what its reader refuses reaches nothing."""
    plural = {"Node": "nodes", "Pod": "pods", "NodeMetric": "nodemetrics"}[raw["kind"]]
    _, (item,) = readers()[plural].page(
        written({"metadata": {"resourceVersion": "1"}, "items": [raw]})
    )
    if item.value is None:
        return
    if plural == "nodes":
        picture.books.node(picture.cluster.node(item.value.name), item.value)
    elif plural == "nodemetrics":
        picture.books.report(item.value.node, item.value.report)
    else:
        picture.books.pod(picture.truth.get(item.meta.key), item.value, NOW)
        picture.truth[item.meta.key] = item.value


def verdicts(picture, request):
    """What is said of every node but the poisoned one, in filter and in score."""
    view = picture.cluster.view()
    sound = [name for name in view.rows if name != "poison"]
    rows = np.array([view.rows[name] for name in sound])
    asked = picture.pipeline.cycle(request, view)
    codes = picture.pipeline.filter(asked, view, rows, NOW).codes.tolist()
    scores = picture.pipeline.score(asked, view, rows, NOW).tolist()
    return dict(zip(sound, zip(codes, scores, strict=True), strict=True))


def test_one_poisoned_among_a_thousand_changes_nothing_for_the_others(picture, make):
    picture.lend(60)
    for number in range(999):
        name = f"n{number}"
        picture.add(
            make.node(name, cpu="16", **{names.BATCH_CPU: "4000"}),
            make.metric(name, cpu=str(number % 16), pods=(f"p{number}",)),
            make.pod(f"p{number}", node=name, requests={"cpu": "2"}),
        )
    asked = [
        picture.request(make.pod("q", requests={"cpu": "4"})),
        picture.request(make.pod("b", requests={names.BATCH_CPU: "3000"}, band="koord-batch")),
    ]
    before = [verdicts(picture, request) for request in asked]
    assert len({codes for codes, _ in before[0].values()}) > 1
    rng = random.Random("poison" + SALT)
    poison = [
        make.node("poison", annotations=dict(NOTES), **{names.BATCH_CPU: "4000"}),
        make.metric("poison", pods=("victim",)),
        make.pod("victim", node="poison", requests={"cpu": "1"}, annotations=dict(FACTORS)),
    ]
    for _ in range(60):
        for raw in poison:
            found = {**rng.choice((anywhere, annotated))(raw, rng), "kind": raw["kind"]}
            fed(picture, found)
        for request in asked:
            verdicts(picture, request)
        pages.node(picture.cluster, "poison")
    assert [verdicts(picture, request) for request in asked] == before


def test_no_call_breaks_a_verb(picture, make):
    picture.add(make.node("n1"), make.metric("n1"), make.pod("r", node="n1"))
    rng = random.Random("verbs" + SALT)
    calls = {
        "filter": {"Pod": make.pod("p", annotations=dict(FACTORS)), "NodeNames": ["n1"]},
        "prioritize": {"Pod": make.pod("p"), "NodeNames": ["n1"]},
        "preempt": {
            "Pod": make.pod("p"), "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u"}]}}
        },
    }  # fmt: skip
    whole = {"Pod": make.pod("p"), "Nodes": {"items": [make.node("n1", annotations=dict(NOTES))]}}
    for _ in range(ROUNDS):
        for verb, body in calls.items():
            answer = getattr(picture.verbs, verb)(written(broken(body, rng)), NOW)
            json.loads(answer)
        for verb in ("filter", "prioritize"):
            msgspec.json.decode(getattr(picture.verbs, verb)(written(broken(whole, rng)), NOW))
        key = rng.choice(["default/p", "default/q"])
        pages.explained(picture.verbs, key, NOW)


@pytest.mark.parametrize("text", [DEEP, json.dumps(nested(200)), "[" * 100_000, "1", "[]", "\x00"])
def test_no_setting_breaks_the_rules_for_lending(text):
    with pytest.raises((ValueError, RecursionError)):
        lending.read(text)


def test_any_setting_is_taken_or_refused():
    rng, taken = random.Random("settings" + SALT), 0
    node = records.NodeRecord("n1", (("cpu", 64000),), (("cpu", 64000),), strategy=DEEP)
    for _ in range(ROUNDS):
        try:
            rules = lending.read(json.dumps(broken(SETTINGS, rng)))
        except (ValueError, RecursionError):
            continue
        taken += 1
        rules.policy(node)
    assert taken


def test_readers_keep_nothing_of_what_they_have_read(make):
    """Pods that differ in a long annotation alone are alike."""
    projector = records.Projector()
    base = msgspec.convert(make.pod("p"), core.Pod)

    def read(number):
        notes = {names.ANNOTATION_LOAD_SCALING_FACTORS: "x" * 100_000 + str(number)}
        metadata = msgspec.structs.replace(base.metadata, annotations=notes)
        return projector.pod(msgspec.structs.replace(base, metadata=metadata))

    kept = [read(number).requirements for number in range(100)]
    assert len(set(map(id, kept))) == 1, "what is too long does not tell pods apart"


LONG = {
    "labels": lambda n: {"labels": {f"l{at}": f"{n}" for at in range(3000)}},
    "owners": lambda n: {
        "ownerReferences": [{"name": f"{n}-{at}", "uid": f"{n}-{at}"} for at in range(3000)]
    },
}


@pytest.mark.parametrize("kind", LONG)
def test_nothing_is_kept_of_long_pods_that_are_gone(make, kind):
    projector = records.Projector()
    base = make.pod("p")

    def feed(number):
        raw = {**base, "metadata": {**base["metadata"], **LONG[kind](number)}}
        projector.pod(msgspec.convert(raw, core.Pod))

    assert held_memory.blocks(feed, 10) < 3000


@pytest.mark.parametrize("beside", ["nothing", "a service", "a pod with a term"])
def test_nothing_is_kept_of_long_pods_that_were_asked_about(beside):
    made = deciding.Deciding()
    for name in ("n1", "n2"):
        made.node(deciding.node(name))
    if beside == "a service":
        made.workloads.set_service("default", "s", {"app": "db"})
    if beside == "a pod with a term":
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
        hard = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        made.bind(deciding.pod("other", affinity={"podAffinity": hard}), "n1")

    def feed(number):
        metadata = {"uid": "one", **LONG["labels"](number)}
        made.filter(deciding.pod("p", metadata=metadata), "n1", "n2")

    # What it was sent to a node with counts for two seconds.
    assert held_memory.blocks(feed, 10) < 10_000
