"""Filter, prioritize and preempt as functions from bytes to bytes."""

import json

import pytest

from extender.plugins.batch_fit import batch_fit
from extender.plugins.load_aware import load_aware
from extender.verbs import filter as filtering

NOW = 1782907200.0
BATCH_10 = {"kubernetes.io/batch-cpu": "10000"}


def _body(pod, names=None, nodes=None):
    return json.dumps({"Pod": pod, "Nodes": nodes, "NodeNames": names}).encode()


def _bytes(picture):
    view = picture.cluster.view()
    return [view.allocatable.tobytes(), view.requested.tobytes()] + [
        column.tobytes() for column in view.figures.values()
    ]


@pytest.fixture
def cluster(picture, make):
    """n1 lends 8.4 cores, n2 lends 14.4, n3 is busy."""
    picture.lend(30)
    picture.add(
        make.node("n1"),
        make.node("n2"),
        make.node("n3"),
        make.pod("online-1", node="n1", requests={"cpu": "100"}),
        make.pod("online-2", node="n2", requests={"cpu": "80"}),
        make.metric("n3", cpu="120"),
    )
    return picture


def test_nothing_refused_gives_the_same_bytes_of_names_back(cluster, make):
    names = b'[ "n2" ,"n1"]'
    body = b'{"Pod":' + json.dumps(make.pod("p")).encode() + b',"NodeNames":' + names + b"}"
    answer = cluster.verbs.filter(body, NOW)
    assert names in answer
    assert json.loads(answer) == {
        "NodeNames": ["n2", "n1"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_refusals_are_grouped_under_constant_reasons(cluster, make):
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    before = _bytes(cluster)
    answer = json.loads(cluster.verbs.filter(_body(job, ["n3", "n1", "n9"]), NOW))
    assert answer == {
        "NodeNames": [],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {
            "n1": batch_fit.CPU.reason,
            "n3": load_aware.busy("cpu").reason,
            "n9": "node is not known to the extender",
        },
        "Error": "",
    }
    assert _bytes(cluster) == before


def test_an_unknown_name_is_explained_beside_the_others(cluster, make):
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    cluster.verbs.filter(_body(job, ["n9", "n1"]), NOW)
    told = cluster.explanations.get("default/job")
    assert (told.asked, told.passed) == (2, 0)
    assert told.reasons[filtering.UNKNOWN.reason] == 1
    assert told.spelled()["n9"] == "node is not known to the extender"
    assert told.spelled()["n1"].startswith(batch_fit.CPU.text)


def test_refused_names_are_left_out_where_one_passes(cluster, make):
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    answer = json.loads(cluster.verbs.filter(_body(job, ["n3", "n1", "n2", "n9"]), NOW))
    assert answer == {
        "NodeNames": ["n2"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    assert set(cluster.explanations.get("default/job").spelled()) == {"n1", "n3", "n9"}


def test_the_explanation_carries_the_figures(cluster, make):
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    cluster.verbs.filter(_body(job, ["n1", "n3"]), NOW)
    told = cluster.told[-1]
    assert told.is_new
    assert told.by_plugin == {
        ("BatchFit", batch_fit.CPU.reason): 1,
        ("LoadAware", load_aware.busy("cpu").reason): 1,
    }
    sentence = cluster.explanations.get("default/job").sentence()
    assert sentence.startswith("0/2 nodes may take it: ")
    assert "asks 10, 8.4 may be lent: (128 - 100) * 30 % - 0 lent" in sentence
    assert "cpu: 120 of 128 is used or expected, 8.5 more would pass 65 %" in sentence
    cluster.verbs.filter(_body(job, ["n1", "n3"]), NOW)
    assert not cluster.told[-1].is_new
    cluster.verbs.filter(_body(job, ["n2"]), NOW)
    assert cluster.explanations.get("default/job").sentence() == "1/1 nodes may take it"


def test_full_nodes_are_a_what_if_and_come_back_untouched(cluster, make):
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    small = make.node("n2", cpu="80") | {"extra": {"kept": [1, 2]}}
    new = make.node("n9")
    before = _bytes(cluster)
    told = len(cluster.told)
    body = _body(job, nodes={"kind": "NodeList", "apiVersion": "v1", "items": [small, new]})
    answer = json.loads(cluster.verbs.filter(body, NOW))
    assert answer["Nodes"]["items"] == [new]
    assert answer["FailedAndUnresolvableNodes"] == {"n2": batch_fit.CPU.reason}
    assert answer["NodeNames"] is None
    assert _bytes(cluster) == before
    assert cluster.explanations.get("default/job") is None
    assert len(cluster.told) == told
    scores = json.loads(cluster.verbs.prioritize(body, NOW))
    assert scores == []


def test_prioritize_prefers_the_cooler_node_and_leaves_zeros_out(picture, make):
    picture.add(make.node("hot"), make.node("warm"), make.node("cool"))
    picture.add(
        make.metric("hot", cpu="60"), make.metric("warm", cpu="40"), make.metric("cool", cpu="10")
    )
    body = _body(make.pod("p", requests={"cpu": "4"}), ["hot", "cool", "warm", "unknown"])
    scores = {e["Host"]: e["Score"] for e in json.loads(picture.verbs.prioritize(body, NOW))}
    assert set(scores) == {"cool", "warm"}
    assert scores["cool"] > scores["warm"] > 0


def test_an_unknown_name_is_not_explained_where_the_extender_is_off(cluster, make):
    cluster.switches.take({"extender": "off"})
    answer = json.loads(cluster.verbs.filter(_body(make.pod("p"), ["n9", "n1"]), NOW))
    assert answer["NodeNames"] == ["n1"]
    assert cluster.explanations.get("default/p") is None


@pytest.mark.parametrize("word", ["observe", "off"])
def test_a_switch_lets_everything_pass(cluster, make, word):
    cluster.switches.take({"extender": word})
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    answer = json.loads(cluster.verbs.filter(_body(job, ["n1", "n2", "n3"]), NOW))
    assert answer["NodeNames"] == ["n1", "n2", "n3"]
    assert json.loads(cluster.verbs.prioritize(_body(job, ["n1", "n2"]), NOW)) == []
    found = cluster.explanations.get("default/job")
    assert (found is None) is (word == "off")
    if found:
        assert found.mode == "observe"
        assert found.passed == 1
    cluster.switches.take({"extender": "nonsense"})
    assert cluster.switches.mode == word
    cluster.switches.take(None)
    assert cluster.switches.enforces


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[]", id="array"),
        pytest.param(b"{", id="truncated"),
        pytest.param(b'{"Pod":null}', id="no pod"),
        pytest.param(b'{"Pod":{},"NodeNames":[1]}', id="numbers for names"),
        pytest.param(b'{"Pod":{},"Nodes":{"items":[7]}}', id="numbers for nodes"),
        pytest.param(b'{"Pod":{"metadata":{"name":"\xff"}}}', id="invalid utf-8"),
        pytest.param(
            b'{"Pod":{"spec":{"affinity":' + b'{"a":' * 20000 + b"1" + b"}" * 20001 + b"}}",
            id="deep nesting",
        ),
        pytest.param(
            b'{"Pod":{"spec":{"containers":[{"resources":{"requests":{"cpu":"x"}}}]}}}',
            id="bad quantity",
        ),
    ],
)
def test_what_cannot_be_read_is_answered_with_an_error(picture, body):
    assert json.loads(picture.verbs.filter(body, NOW))["Error"].startswith("filter: ")
    assert picture.verbs.prioritize(body, NOW) == b"[]"


def test_amounts_beyond_any_machine_do_no_harm(picture, make):
    picture.add(
        make.node("n1", annotations={"node.koordinator.sh/raw-allocatable": '{"cpu":"9E"}'}),
        make.pod("mad", node="n1", requests={"cpu": "1"}, limits={"cpu": "9E", "memory": "9Ei"}),
        make.metric("n1", cpu="9E", memory="9Ei"),
    )
    body = _body(make.pod("p", requests={"cpu": "9E"}, limits={"memory": "9Ei"}), ["n1"])
    assert json.loads(picture.verbs.filter(body, NOW))["Error"] == ""
    assert json.loads(picture.verbs.prioritize(body, NOW)) == []


def test_names_without_candidates(picture, make):
    answer = json.loads(picture.verbs.filter(_body(make.pod("p")), NOW))
    assert not answer["NodeNames"]
    assert answer["Error"] == ""
