"""NodeResourcesFitPlus and ScarceResourceAvoidance: scores by the resources that a pod requests."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.kubernetes import core
from api.plugin_args import models
from domain.pods import resources
from extender import plugin_selection, registry, settings
from extender.framework import views
from extender.plugins.node_resources_fit_plus import node_resources_fit_plus as plus
from extender.plugins.scarce_resource_avoidance import scarce_resource_avoidance as scarce
from extender.state import claims, cluster_state, deltas, records

GPU = "nvidia.com/gpu"
PACK_GPUS = {GPU: ("MostAllocated", 2), "cpu": ("LeastAllocated", 1)}


class Cluster:
    """Nodes and pods under one scorer."""

    def __init__(self, plugin):
        self.plugin = plugin
        self.state = cluster_state.ClusterState((plugin,), ("cpu", "memory"))

    def node(self, name, **offered):
        node = core.Node(
            metadata=core.ObjectMeta(name=name), status=core.NodeStatus(allocatable=offered)
        )
        self.state.apply(deltas.NodeDelta(name, None, records.Projector().node(node)))

    def pod(self, name, node="", inits=(), overhead=None, **requests):
        spec = core.PodSpec(
            node_name=node,
            containers=(container(**requests),),
            init_containers=inits,
            overhead=overhead or {},
        )
        found = core.Pod(metadata=core.ObjectMeta(name=name, uid=name), spec=spec)
        record = records.Projector().pod(found)
        if node:
            claim = claims.Claim(name, claims.ClaimKind.BOUND, node, record)
            self.state.apply(deltas.ClaimDelta(name, None, claim))
        return views.PodInfo.of(record)

    def scores(self, pod):
        view = self.state.view()
        rows = np.array(list(view.rows.values()), dtype=np.intp)
        found = self.plugin.score(self.plugin.pre_filter(pod, view), view, rows, 0.0)
        return dict(zip(view.rows, found.values.tolist(), strict=True))


def container(restart="", **requests):
    asked = {name.replace("gpu", GPU): text for name, text in requests.items()}
    needs = core.ResourceRequirements(requests=asked)
    return core.Container(name="c", resources=needs, restart_policy=restart)


@pytest.fixture
def gpus():
    made = Cluster(plus.NodeResourcesFitPlus(PACK_GPUS))
    made.node("free", cpu="10", memory="10Gi", **{GPU: "8"})
    made.node("used", cpu="10", memory="10Gi", **{GPU: "8"})
    made.node("none", cpu="10", memory="10Gi")
    made.pod("there", "used", gpu="4", cpu="4")
    return made


@pytest.mark.parametrize(
    ("requests", "scores"),
    [
        pytest.param({"gpu": "2"}, {"free": 25, "used": 75, "none": 0}, id="packs the one"),
        pytest.param({"cpu": "2"}, {"free": 80, "used": 40, "none": 80}, id="spreads the other"),
        pytest.param(
            {"gpu": "2", "cpu": "2"},
            {"free": (2 * 25 + 80) // 3, "used": (2 * 75 + 40) // 3, "none": 80 // 3},
            id="weighs both, without what a node does not offer",
        ),
        pytest.param({"memory": "1Gi"}, dict.fromkeys(("free", "used", "none"), 100), id="neither"),
        pytest.param({"cpu": "7"}, {"free": 30, "used": 0, "none": 30}, id="more than is left"),
        pytest.param({"gpu": "9"}, {"free": 100, "used": 100, "none": 0}, id="more than there is"),
    ],
)
def test_each_resource_has_its_own_strategy(gpus, requests, scores):
    assert gpus.scores(gpus.pod("p", **requests)) == scores


def test_containers_without_requests_count_and_explicit_zeros_do_not(gpus):
    gpus.pod("silent", "free", memory="1Gi")
    gpus.pod("nothing", "free", cpu="0")
    assert gpus.scores(gpus.pod("p", cpu="900m"))["free"] == 90


@pytest.mark.parametrize(
    ("inits", "cpu"),
    [
        pytest.param((), 1000, id="containers"),
        pytest.param((("", "3"),), 3000, id="an init container that is larger"),
        pytest.param((("", "500m"),), 1000, id="an init container that is smaller"),
        pytest.param((("Always", "2"), ("", "2500m")), 3000, id="sidecars are added in order"),
        pytest.param((("", "2500m"), ("Always", "2")), 4500, id="after what came before"),
        pytest.param((("", None),), 1000, id="an init container without a request"),
    ],
)
def test_init_containers_count_in_their_order(inits, cpu):
    pod = core.Pod(
        spec=core.PodSpec(
            containers=(container(cpu="1"),),
            init_containers=tuple(
                container(restart, **({"cpu": text} if text else {})) for restart, text in inits
            ),
            overhead={"cpu": "250m"},
        )
    )
    assert resources.sequential_requests(pod)["cpu"] == cpu + 250


def test_an_unknown_strategy_scores_nothing_and_keeps_its_weight():
    made = Cluster(plus.NodeResourcesFitPlus({"cpu": ("LeastAllocated", 1), GPU: ("Most", 1)}))
    made.node("n1", cpu="10", **{GPU: "8"})
    assert made.scores(made.pod("p", cpu="2", gpu="4")) == {"n1": 40}


def test_nominated_pods_are_not_counted_as_requested(gpus):
    record = records.Projector().pod(
        core.Pod(
            metadata=core.ObjectMeta(name="later", uid="later"),
            spec=core.PodSpec(node_name="free", containers=(container(gpu="8"),)),
        )
    )
    claim = claims.Claim("later", claims.ClaimKind.NOMINATED, "free", record)
    gpus.state.apply(deltas.ClaimDelta("later", None, claim))
    assert gpus.scores(gpus.pod("p", gpu="2"))["free"] == 25


@pytest.mark.parametrize(
    ("requests", "gpu_node"),
    [
        pytest.param({"cpu": "1"}, (6 - 2) * 100 // 6, id="leaves gpus and cards unused"),
        pytest.param({"cpu": "1", "gpu": "1"}, (5 - 1) * 100 // 5, id="leaves cards unused"),
        pytest.param(
            {"cpu": "1", "gpu": "1", "memory": "1", "example.com/nic": "1"}, 100, id="none"
        ),
    ],
)
def test_nodes_with_scarce_resources_are_left_to_pods_that_request_them(requests, gpu_node):
    made = Cluster(scarce.ScarceResourceAvoidance((GPU, "example.com/nic", "absent")))
    made.node("plain", cpu="8", memory="8Gi", pods="110")
    made.node("empty", cpu="8", memory="8Gi", **{GPU: "0"})
    more = {"ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi", "batch.example.com/cpu": "1"}
    made.node("gpus", cpu="8", memory="8Gi", **{GPU: "8", "example.com/nic": "1"}, **more)
    found = made.scores(made.pod("p", **requests))
    assert found == {"plain": 100, "empty": 100, "gpus": gpu_node}


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", GPU, "a/b"]), st.integers(0, 20))


@given(
    nodes=st.lists(AMOUNTS, min_size=1, max_size=4),
    asked=AMOUNTS,
    held=AMOUNTS,
    weights=st.dictionaries(
        st.sampled_from(["cpu", "memory", GPU, "a/b"]),
        st.tuples(st.sampled_from(["MostAllocated", "LeastAllocated", "x"]), st.integers(0, 9)),
    ),
)
def test_scores_are_0_to_100_for_each_node_alone_and_change_nothing(nodes, asked, held, weights):
    for plugin in (plus.NodeResourcesFitPlus(weights), scarce.ScarceResourceAvoidance(weights)):
        made = Cluster(plugin)
        for place, offered in enumerate(nodes):
            made.node(f"n{place}", **{name: str(value) for name, value in offered.items()})
        made.pod("there", "n0", **{name: str(value) for name, value in held.items()})
        pod = made.pod("p", **{name: str(value) for name, value in asked.items()})
        before = {name: part.tobytes() for name, part in made.state.view().figures.items()}
        found = made.scores(pod)
        assert all(0 <= score <= 100 for score in found.values())
        assert before == {n: part.tobytes() for n, part in made.state.view().figures.items()}
        view = made.state.view()
        for name, row in view.rows.items():
            one = view.only(row)
            alone = plugin.score(plugin.pre_filter(pod, one), one, views.every(1), 0.0)
            assert alone.values.tolist() == [found[name]]


@pytest.mark.parametrize("name", ["NodeResourcesFitPlus", "ScarceResourceAvoidance"])
def test_both_are_off_until_they_are_enabled(name):
    assert name not in plugin_selection.select(settings.PluginSettings()).names()
    chosen = settings.PluginSettings(enabled=(name,), weights={name: 1})
    built = registry.build(plugin_selection.select(chosen))
    assert [one.scorer.name for one in registry.assemble(built).scorers] == [name]
    assert name in models.MODELS
