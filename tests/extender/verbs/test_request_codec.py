"""What is remembered between calls must never change an answer."""

import json

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from extender import plugin_selection, registry, settings
from extender.framework import pipeline
from extender.verbs import request_codec, verbs

NAMES = [f"n{number}" for number in range(6)]
PODS = ("small", "large", "batch")


def _fresh(picture):
    """Return the same verbs over the same picture without any memory."""
    return verbs.Verbs(
        picture.cluster,
        picture.pipeline,
        picture.projector,
        picture.switches,
        picture.explanations,
        lambda refused: None,
        request_codec.Reader(picture.projector),
    )


def _body(pod, names):
    document = {"Pod": pod, "Nodes": None, "NodeNames": names}
    return json.dumps(document, separators=(",", ":")).encode()


def _cluster(picture, make):
    for number, name in enumerate(NAMES):
        lent = {"kubernetes.io/batch-cpu": "4000", "kubernetes.io/batch-memory": "8Gi"}
        used = "120" if number % 3 == 0 else str(10 * number)
        picture.add(make.node(name, **lent), make.metric(name, cpu=used, memory="10Gi"))
    return {
        "small": make.pod("small", requests={"cpu": "1"}),
        "large": make.pod("large", requests={"cpu": "60"}),
        "batch": make.pod("batch", band="koord-batch", requests={"cpu": "5"}),
    }


ASKED = st.lists(st.sampled_from([*NAMES, "nobody"]), max_size=6, unique=True)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["filter", "prioritize", "both", "remove", "restore", "bind"]),
        st.sampled_from(PODS),
        ASKED,
    ),
    max_size=14,
)


@hypothesis.settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(steps=STEPS)
def test_answers_are_those_of_somebody_without_memory(fresh_picture, make, steps):
    picture = fresh_picture()
    pods = _cluster(picture, make)
    nodes = {name: picture.cluster.node(name) for name in NAMES}
    for turn, (action, kind, asked) in enumerate(steps):
        name, body = NAMES[turn % len(NAMES)], _body(pods[kind], asked)
        if action == "remove" and picture.cluster.node(name) is not None:
            picture.books.node(nodes[name], None)
        elif action == "restore" and picture.cluster.node(name) is None:
            picture.books.node(None, nodes[name])
        elif action == "bind" and picture.cluster.node(name) is not None:
            picture.add(make.pod(f"{kind}-{turn}", node=name, requests={"cpu": "30"}))
        else:
            _same(picture, action, body, pods[kind])


def _same(picture, action, body, pod):
    """Ask with and without memory; `both` goes on with the names that filter left."""
    now = 1782907200.0
    if action in ("filter", "both"):
        answer = picture.verbs.filter(body, now)
        assert json.loads(answer) == json.loads(_fresh(picture).filter(body, now))
        body = _body(pod, json.loads(answer)["NodeNames"]) if action == "both" else body
    if action in ("prioritize", "both"):
        assert picture.verbs.prioritize(body, now) == _fresh(picture).prioritize(body, now)


@hypothesis.given(
    scores=st.lists(st.integers(0, 100), min_size=1, max_size=20),
    marks=st.lists(st.text(max_size=8), min_size=20, max_size=20, unique=True),
)
def test_scores_are_written_as_any_encoder_would(scores, marks):
    writer = request_codec.Scores()
    for _ in range(2):
        text = writer.write(marks[: len(scores)], np.asarray(scores))
        expected = [
            {"Host": name, "Score": score}
            for name, score in zip(marks, scores, strict=False)
            if score
        ]
        assert json.loads(text) == expected


@hypothesis.given(names=st.lists(st.text(max_size=3), max_size=20))
def test_names_find_their_rows(names):
    rows = {name: number for number, name in enumerate(set(names)) if number % 3}
    assert request_codec.look_up(names, rows).tolist() == [rows.get(name, -1) for name in names]


REQUESTS = st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from(["1", "30", "90"]), "memory": st.just("100Gi")}
)


@pytest.mark.parametrize("name", settings.PluginSettings().enabled)
@hypothesis.settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(band=st.sampled_from(["koord-prod", "koord-batch"]), requests=REQUESTS)
def test_of_one_node_alone_the_same_is_said_as_among_all(fresh_picture, make, name, band, requests):
    picture = fresh_picture()
    _cluster(picture, make)
    chosen = settings.PluginSettings(enabled=(name,))
    plugin = registry.assemble(registry.build(plugin_selection.select(chosen)))
    asked = picture.request(make.pod("p", band=band, requests=requests))
    view, now = picture.cluster.view(), 1782907200.0
    outcome = plugin.filter(asked, view, now)
    rows = list(range(len(view.names)))
    scores = plugin.score(asked, view, rows, now).tolist()
    for row in rows:
        one = view.only(row)
        assert plugin.filter(asked, one, now).refusal(0) == outcome.refusal(row)
        assert plugin.score(asked, one, [0], now).tolist() == [scores[row]]
        assert plugin.reserve(asked, one, 0, now) == plugin.reserve(asked, view, row, now)
        refusal = outcome.refusal(row) or pipeline.Refusal(name, verbs.UNKNOWN)
        sentences = (
            plugin.sentence(asked, one, 0, refusal, now),
            plugin.sentence(asked, view, row, refusal, now),
        )
        assert sentences[0] == sentences[1]


def test_a_picture_of_one_node_does_not_change_with_it(picture, make):
    picture.add(make.node("n1"), make.metric("n1", cpu="10"))
    one = picture.cluster.view().only(0)
    before = {name: summary.copy() for name, summary in one.figures.items()}
    picture.add(make.pod("p", node="n1", requests={"cpu": "60"}))
    picture.cluster.view()
    assert all((one.figures[name] == before[name]).all() for name in before)
    assert one.node(0).pods == ()
