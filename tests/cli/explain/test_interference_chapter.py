"""What `koord explain` tells of neighbours that slow a pod down."""

import pytest

from api import names
from api.koordinator.metrics import nodemetric
from cli.explain import interference_chapter, node_story, stories
from cli.explain.pod import pod_facts, pod_story
from tests import builders

SUSPECT = {"namespace": "batch", "name": "spark-1", "qos": "BE", "rise": 2.5, "share": 0.9}
ENTRY = {
    "signal": "cpu-some",
    "value": 42.4,
    "baseline": 3.1,
    "deviations": 9.0,
    "since": "2026-07-01T12:00:05Z",
    "confidence": "high",
    "suspects": [SUSPECT],
}


def metric(*entries, wrapped=True, name="web-0"):
    data = {names.INTERFERENCE: list(entries)}
    pod = {"namespace": "shop", "name": name, "extensions": {"Object": data} if wrapped else data}
    return nodemetric.read_node_metric(
        {"metadata": {"name": "n1"}, "status": {"podsMetric": [pod]}}
    )


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_node_names_victims_and_suspects(wrapped):
    chapter = interference_chapter.of_node(metric(ENTRY, wrapped=wrapped))
    assert chapter.sentences == (
        ("Pod shop/web-0 is slowed down by its neighbours: some of its tasks wait for cpu 42 % of "
        "the time, usually 3 % (9.0 deviations above) since 2026-07-01T12:00:05Z; suspected with "
        "high confidence: batch/spark-1 (BE), which added 2.5 cores."),
    )  # fmt: skip
    assert chapter.figures["findings"][0]["pod"] == "shop/web-0"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"signal": "memory-full", "suspects": [SUSPECT | {"rise": 3 << 30}]},
         "all its tasks wait for memory 42 % of the time"),
        ({"signal": "memory-full", "suspects": [SUSPECT | {"rise": 3 << 30}]},
         "which added 3.0 GiB of memory."),
        ({"signal": "io-some", "suspects": [SUSPECT | {"rise": 5 << 20}]},
         "which added 5.0 MiB of disk traffic per second."),
        ({"signal": "cpi", "value": 2.5, "baseline": 1.2, "container": "app"},
         "container app: 2.50 cycles per instruction, usually 1.20"),
        ({"suspects": []}, "no neighbour is suspected."),
        ({"suspects": [{"name": "processes outside of pods", "rise": 1.0}]},
         "confidence: processes outside of pods, which added 1 core."),
    ],
)  # fmt: skip
def test_every_signal_in_words(changes, said):
    (sentence,) = interference_chapter.of_node(metric(ENTRY | changes)).sentences
    assert said in sentence


def test_a_pod_is_told_who_slows_it_down_and_whom_it_slows_down():
    found = metric(ENTRY)
    victim = interference_chapter.of_pod(found, "shop/web-0")
    assert victim.sentences[0].startswith("Its neighbours slow it down: some of its tasks wait")
    suspect = interference_chapter.of_pod(found, "batch/spark-1")
    assert suspect.sentences == (
        ("It is suspected with high confidence of slowing down pod shop/web-0: some of its tasks "
        "wait for cpu 42 % of the time, usually 3 % (9.0 deviations above)."),
    )  # fmt: skip
    assert interference_chapter.of_pod(found, "shop/other").sentences == ()


def test_the_stories_have_the_chapter():
    raw = builders.a_pod("web-0")
    raw["metadata"]["namespace"] = "shop"
    raw["spec"]["nodeName"] = "n1"
    told = pod_story.told(pod_facts.Facts("shop/web-0", raw, metric=metric(ENTRY)))
    assert "interference" in [chapter.name for chapter in told.chapters]
    facts = node_story.Facts("n1", 0.0, raw={"metadata": {"name": "n1"}}, metric=metric(ENTRY))
    assert "\nInterference\n" in "\n".join(stories.lines(node_story.told(facts)))


def test_without_a_report_nothing_is_told():
    assert interference_chapter.of_node(None).sentences == ()
    assert interference_chapter.of_pod(None, "a/b").sentences == ()


@pytest.mark.parametrize(
    "written",
    [None, 3, "text", {}, [None], [[]], [{"signal": 3}], [ENTRY | {"value": "much"}],
     [ENTRY | {"suspects": [{"rise": "x"}]}], [{"signal": "cpu-some"}],
     [ENTRY | {"value": float("inf")}], [ENTRY | {"suspects": [{"rise": float("nan")}]}]],
)  # fmt: skip
def test_what_cannot_be_read_is_left_out(written):
    pod = nodemetric.PodMetric(name="p", extensions={names.INTERFERENCE: written})
    assert interference_chapter.entries(pod) == []


def test_hostile_names_stay_on_their_line():
    bad = "x\n\x1b[31mNode lost" + "y" * 9000
    entry = ENTRY | {"container": bad, "confidence": bad, "suspects": [SUSPECT | {"name": bad}]}
    for chapter in (
        interference_chapter.of_node(metric(*[entry] * 40)),
        interference_chapter.of_pod(metric(*[entry] * 40), "shop/web-0"),
    ):
        assert 1 < len(chapter.sentences) <= 11
        for sentence in chapter.sentences:
            assert sentence.isprintable()
            assert len(sentence) < 3000
