"""What is remembered between calls must never change an answer."""

import json

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from benchmarks.plane import feed
from extender import plugin_selection, registry, settings
from extender.framework import pipeline, weighing
from extender.verbs import request_codec, verbs
from kube.informers import store
from tests import draws

NAMES = [f"node-{number}" for number in range(6)]
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


ASKED = st.lists(st.sampled_from([*NAMES, "node-x", "nobody"]), max_size=6, unique=True)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["filter", "prioritize", "both", "remove", "restore", "bind"]),
        st.sampled_from(PODS),
        ASKED,
    ),
    max_size=14,
)


@hypothesis.settings(
    max_examples=draws.at_least(60),
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


TRICKY = st.sampled_from(
    [
        *("n1", "]", '"', "}", "[", ",", ":", "\\", "Nodes", "NodeNames", "null", " ", "\n"),
        ',"Nodes":null,"NodeNames":["n2"]',
    ]
)
TEXTS = st.lists(TRICKY, max_size=3).map("".join)
DOCUMENTS = st.recursive(
    st.one_of(st.none(), st.integers(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["Pod", "Nodes", "NodeNames", "x"]), inner, max_size=3),
    ),
    max_leaves=6,
)
MEMBERS = st.lists(
    st.one_of(
        st.tuples(st.just("Nodes"), st.none()),
        st.tuples(st.just("NodeNames"), st.one_of(st.lists(TEXTS, max_size=3), DOCUMENTS)),
        st.tuples(st.sampled_from(["Pod", "Nodes", "More"]), DOCUMENTS),
    ),
    max_size=4,
)


def _read(reader, body):
    """Return what a call says, or that it cannot be read."""
    try:
        found = reader.read(body)
        names = request_codec._NAMES.decode(found.text)
    except ValueError:
        return None
    return found.request, found.nodes, names


@hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(
    members=MEMBERS,
    after=st.sampled_from(["}", "]", "", "}}", "}]", '} ,"Nodes":null,"NodeNames":["n3"]}', "}\n"]),
    spaced=st.booleans(),
)
def test_calls_are_cut_as_a_decoder_would(fresh_picture, make, members, after, spaced):
    """Whatever follows the pod, and whatever stands in texts: equal, or unreadable in both ways."""
    picture = fresh_picture()
    pod = json.dumps(make.pod("p", requests={"cpu": "1"}), separators=(",", ":"))
    marks = (", ", ": ") if spaced else (",", ":")
    rest = [f'"{key}":{json.dumps(value, separators=marks)}' for key, value in members]
    usual = ['"Nodes":null', '"NodeNames":["n1","n2"]']
    for chosen in (rest, [*usual, *rest], [*rest, *usual], usual):
        body = ("{" + ",".join([f'"Pod":{pod}', *chosen]) + after).encode()
        assert _read(request_codec.Reader(picture.projector), body) == _read(_Slow(picture), body)


class _Slow(request_codec.Reader):
    """Reads calls by the decoder alone."""

    def __init__(self, picture):
        super().__init__(picture.projector)

    def read(self, body):
        call = request_codec._CALL.decode(body)
        parts = (bytes(part) for part in (call.pod, call.nodes, call.node_names))
        return self._question(request_codec._Parts(*parts))


@pytest.mark.parametrize("kilobytes", [2, 7, 60])
def test_a_scheduler_s_calls_are_cut(kilobytes):
    pod = feed.pod_text(1, "", moment="", kilobytes=kilobytes)
    body = f'{{"Pod":{pod},"Nodes":null,"NodeNames":["a","b"]}}'.encode()
    assert request_codec._cut(body) == (pod.encode(), b"null", b'["a","b"]')


@hypothesis.given(names=st.lists(st.text(max_size=3), max_size=20))
def test_names_find_their_rows(names):
    rows = {name: number for number, name in enumerate(set(names)) if number % 3}
    assert request_codec.look_up(names, rows).tolist() == [rows.get(name, -1) for name in names]


REQUESTS = st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from(["1", "30", "90"]), "memory": st.just("100Gi")}
)


@pytest.mark.parametrize("name", settings.PluginSettings().enabled)
@hypothesis.settings(
    max_examples=draws.at_least(30),
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
    asked = plugin.cycle(asked, view)
    rows = np.arange(len(view.names))
    outcome = plugin.filter(asked, view, rows, now)
    scores = plugin.score(asked, view, rows, now).tolist()
    for row in rows.tolist():
        one = view.only(row)
        alone = pipeline.alone(row)
        assert plugin.filter(asked, view, alone, now).refusal(0) == outcome.refusal(row)
        assert plugin.score(asked, view, alone, now).tolist() == [scores[row]]
        assert plugin.filter(asked, one, pipeline.ROW, now).refusal(0) == outcome.refusal(row)
        assert plugin.score(asked, one, pipeline.ROW, now).tolist() == [scores[row]]
        assert plugin.reserve(asked, one, 0) == plugin.reserve(asked, view, row)
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


def test_scores_of_higher_tiers_are_written_as_they_are():
    scores = np.array([0, 7, weighing.TIER + 3, 2 * weighing.TIER])
    written = request_codec.Scores().write(["a", "b", "c", "d"], scores)
    assert json.loads(written) == [
        {"Host": "b", "Score": 7},
        {"Host": "c", "Score": weighing.TIER + 3},
        {"Host": "d", "Score": 2 * weighing.TIER},
    ]


SAME = {
    "the version that was watched": ({}, True),
    "a later version": ({"resourceVersion": "8"}, False),
    "no version": ({"resourceVersion": ""}, False),
    "another pod of the name": ({"uid": "another"}, False),
    "a pod that was not watched": ({"name": "other"}, False),
}


@pytest.mark.parametrize(("changes", "taken"), SAME.values(), ids=SAME)
def test_a_pod_is_read_again_unless_the_watch_has_shown_that_very_version(
    picture, make, changes, taken
):
    watched, shown = store.Store(), make.pod("p", requests={"cpu": "1"})
    metadata = shown["metadata"] | {"resourceVersion": "7"}
    record = picture.record(shown)
    watched.put(store.Meta(record.key, record.uid, 7), record)
    # What differs below tells which of both was read; one version of one object never differs.
    sent = make.pod("p", requests={"cpu": "2"}) | {"metadata": metadata | changes}
    found = request_codec.Reader(picture.projector, watched).read(_body(sent, ["n1"]))
    asked = dict(found.request.requirements.requests)
    assert asked == {"cpu": 1000 if taken else 2000}
    assert found.traits == (record.scoring if taken else None)


def test_an_unknown_version_is_no_version(picture, make):
    watched, shown = store.Store(), make.pod("p", requests={"cpu": "1"})
    record = picture.record(shown)
    watched.put(store.Meta(record.key, record.uid, 0), record)
    metadata = shown["metadata"] | {"resourceVersion": "0"}
    sent = make.pod("p", requests={"cpu": "2"}) | {"metadata": metadata}
    found = request_codec.Reader(picture.projector, watched).read(_body(sent, ["n1"]))
    assert dict(found.request.requirements.requests) == {"cpu": 2000}
