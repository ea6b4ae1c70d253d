"""Anti-affinity to pods and topology spread, as the stock scheduler filters by them."""

import pytest

from simulator.scheduler import intree, other_pods, snapshot

ZONE, HOST = "zone", "kubernetes.io/hostname"
APP = {"matchLabels": {"app": "a"}}
KIND = "requiredDuringSchedulingIgnoredDuringExecution"


def apart(key=ZONE, **more):
    term = {"labelSelector": APP, "topologyKey": key, **more}
    return {"affinity": {"podAntiAffinity": {KIND: [term]}}}


def spread(key=ZONE, skew=1, **more):
    one = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**one, "labelSelector": APP, **more}]}


def a_pod(name, node="", namespace="default", app="a", **spec):
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": {"app": app}}
    on = {"nodeName": node} if node else {}
    return intree.read_pod({"metadata": metadata, "spec": {"containers": [], **on, **spec}})


def refused(pod, *placed, nodes=(("n1", "z1"), ("n2", "z1"), ("n3", "z2"))):
    """Why each node refuses a pod, by name; those that do not are left out."""
    view = snapshot.Snapshot()
    for name, zone in nodes:
        labels = {HOST: name} | ({ZONE: zone} if zone else {})
        view.set_node({"metadata": {"name": name, "labels": labels}})
    for one in placed:
        view.set_pod(one)
    found = {name: other_pods.check(pod, node, view) for name, node in view.nodes.items()}
    return {name: one.reasons[0] for name, one in found.items() if one is not None}


OWN, THEIRS, SPREAD = other_pods.OWN_RULES, other_pods.THEIR_RULES, other_pods.SPREAD


@pytest.mark.parametrize(
    ("pod", "placed", "expected"),
    [
        pytest.param(a_pod("p", **apart()), [], {}, id="nobody there"),
        pytest.param(a_pod("p", **apart()), [a_pod("q", "n1")], {"n1": OWN, "n2": OWN}, id="zone"),
        pytest.param(a_pod("p", **apart(HOST)), [a_pod("q", "n1")], {"n1": OWN}, id="host"),
        pytest.param(a_pod("p", **apart()), [a_pod("q", "n1", app="b")], {}, id="other labels"),
        pytest.param(a_pod("p", **apart()), [a_pod("q", "n1", "x")], {}, id="other namespace"),
        pytest.param(
            a_pod("p", **apart(namespaces=["x"])), [a_pod("q", "n3", "x")], {"n3": OWN},
            id="the namespace that is named",
        ),
        pytest.param(
            a_pod("p"), [a_pod("q", "n1", app="b", **apart())], {"n1": THEIRS, "n2": THEIRS},
            id="the other one repels it",
        ),
        pytest.param(
            a_pod("p", app="b"), [a_pod("q", "n1", **apart())], {}, id="it repels others",
        ),
        pytest.param(a_pod("q", **apart()), [a_pod("q", "n1", **apart())], {}, id="itself"),
        pytest.param(
            a_pod("p", **spread()), [a_pod("q", "n1")], {"n1": SPREAD, "n2": SPREAD}, id="skewed",
        ),
        pytest.param(
            a_pod("p", **spread()), [a_pod("q", "n1"), a_pod("r", "n3")], {}, id="even again",
        ),
        pytest.param(a_pod("p", **spread(skew=2)), [a_pod("q", "n1")], {}, id="within the skew"),
        pytest.param(a_pod("p", app="b", **spread()), [a_pod("q", "n1")], {}, id="not counted"),
        pytest.param(a_pod("p", **spread()), [a_pod("q", "n1", "x")], {}, id="elsewhere"),
        pytest.param(
            a_pod("p", nodeSelector={HOST: "n1"}, **spread()), [a_pod("q", "n1")], {},
            id="only domains that it may use",
        ),
    ],
)  # fmt: skip
def test_which_nodes_are_refused(pod, placed, expected):
    assert refused(pod, *placed) == expected


def test_a_node_without_the_label_is_no_domain():
    nodes = (("n1", "z1"), ("n2", ""))
    assert refused(a_pod("p", **spread()), nodes=nodes) == {"n2": other_pods.NO_LABEL}
    placed = a_pod("q", "n2")
    assert refused(a_pod("p", **apart()), placed, nodes=nodes) == {}


def test_what_has_left_repels_nobody():
    view = snapshot.Snapshot()
    view.set_node({"metadata": {"name": "n1", "labels": {ZONE: "z1"}}})
    first = a_pod("q", "n1", **apart())
    view.set_pod(first)
    assert [one.uid for one, _ in view.repelling()] == ["uid-q"]
    view.remove_pod(first.uid)
    assert other_pods.check(a_pod("p"), view.nodes["n1"], view) is None
