"""Nodes are judged and scored alike one by one and all together, remembered or not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from extender.framework import views
from extender.plugins.device_share import judgement
from tests.extender.clusters import device_cluster
from tests.extender.clusters.device_cluster import NAME, NOW, DeviceCluster, device, gpu, rdma

HINT = {names.ANNOTATION_DEVICE_HINT: '{"gpu":{"selector":{"matchLabels":{"model":"H"}}}}'}
WANTED = {
    "a share": ({names.GPU: "30"}, {}),
    "two GPUs": ({names.NVIDIA_GPU: "2"}, {}),
    "memory": ({names.GPU_MEMORY: "30Gi"}, {}),
    "cores and memory": ({names.GPU_CORE: "20", names.GPU_MEMORY_RATIO: "60"}, {}),
    "GPUs with a label": ({names.GPU: "50"}, HINT),
    "an adapter": ({names.RDMA: "40"}, {}),
    "two adapters": ({names.RDMA: "200"}, {}),
    "two types": ({names.GPU: "50", names.RDMA: "40"}, {}),
}
KINDS = st.sampled_from(sorted(WANTED))
NODES = (
    (),
    (rdma(0),),
    (gpu(0), gpu(1), rdma(0), rdma(1)),
    (gpu(0, labels={"model": "H"}), gpu(1, labels={"model": "H"})),
    (gpu(0, labels={"model": "H"}), gpu(1, labels={"model": "A"}), rdma(0)),
    (gpu(0, health=False), gpu(1, memory="16Gi")),
    tuple(gpu(minor) for minor in range(17)),
)


def filled(strategy, pods):
    """Nodes of every sort and one without a Device, each under some pods."""
    made = DeviceCluster(device_cluster.plugin(scoringStrategy={"type": strategy}))
    for number, found in enumerate((*NODES, None)):
        made.node(f"n{number}")
        if found is not None:
            made.devices(device(f"n{number}", *found))
    for number, (kind, node) in enumerate(pods):
        requests, notes = WANTED[kind]
        made.bind(made.pod(f"p{number}", requests, annotations=notes), f"n{node}")
    return made


def answers(plugin, view, pod, rows):
    """What the plug-in says of some rows: refusals, trials, scores."""
    prepared = plugin.pre_filter(views.PodInfo.of(pod), view)
    verdict = plugin.filter(prepared, view, rows, NOW)
    refused = np.zeros(rows.size) if verdict is None else verdict.codes
    if plugin.passes_all(prepared, view, NOW):
        assert not refused.any()
    texts = ["", *(() if verdict is None else (one.reason for one in verdict.statuses))]
    return list(
        zip(
            [texts[int(code)] for code in refused],
            plugin.needs_trial(prepared, view, rows).tolist(),
            plugin.score(prepared, view, rows, NOW).values.tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("strategy", ["LeastAllocated", "MostAllocated"])
@settings(max_examples=15, deadline=None)
@given(
    pods=st.lists(
        st.tuples(st.sampled_from(sorted(WANTED)), st.integers(0, len(NODES))), max_size=8
    ),
    kind=st.sampled_from(sorted(WANTED)),
)
def test_one_node_is_judged_as_among_all(strategy, pods, kind):
    cluster = filled(strategy, pods)
    view = cluster.state.view()
    assert view.known.size > judgement.FEW
    requests, notes = WANTED[kind]
    pod = cluster.pod("asked", requests, annotations=notes)
    everyone = views.every(view.known.size)

    def unaware():
        return device_cluster.plugin(scoringStrategy={"type": strategy})

    together = answers(unaware(), view, pod, everyone)
    assert answers(cluster.plugin, view, pod, everyone) == together
    assert answers(cluster.plugin, view, pod, everyone) == together
    alone = unaware()
    for row, expected in enumerate(together):
        one = np.array([row])
        assert answers(alone, view, pod, one) == [expected]
        assert answers(cluster.plugin, view.only(row), pod, np.array([0])) == [expected]
    cluster.bind(cluster.pod("another", {names.GPU: "40"}), "n2")
    changed = cluster.state.view()
    assert answers(cluster.plugin, changed, pod, everyone) == answers(
        unaware(), changed, pod, everyone
    )
    assert NAME in changed.figures


def test_few_classes_of_nodes_are_remembered(monkeypatch):
    monkeypatch.setattr(judgement, "MOST_CLASSES", 2)
    cluster = filled("LeastAllocated", ())
    pod = cluster.pod("asked", {names.GPU: "50"})
    everyone = views.every(cluster.state.view().known.size)
    for number in range(6):
        cluster.bind(cluster.pod(f"p{number}", {names.GPU: "30"}), f"n{2 + number % 2}")
        view = cluster.state.view()
        fresh = device_cluster.plugin(scoringStrategy={"type": "LeastAllocated"})
        expected = answers(fresh, view, pod, everyone)
        assert answers(cluster.plugin, view, pod, everyone) == expected
    kinds = cluster.plugin._judgement._kinds.values()
    assert max(len(kind.by_class) for kind in kinds) in (1, 2)


def test_few_kinds_of_pods_are_remembered(monkeypatch):
    monkeypatch.setattr(judgement, "MOST_KINDS", 2)
    cluster = filled("LeastAllocated", ())
    view = cluster.state.view()
    everyone = views.every(view.known.size)
    for kind in (*sorted(WANTED), *sorted(WANTED)):
        requests, notes = WANTED[kind]
        pod = cluster.pod("asked", requests, annotations=notes)
        fresh = device_cluster.plugin(scoringStrategy={"type": "LeastAllocated"})
        expected = answers(fresh, view, pod, everyone)
        assert answers(cluster.plugin, view, pod, everyone) == expected
        assert len(cluster.plugin._judgement._kinds) <= 2


def test_a_filter_passes_all_as_long_as_no_node_is_refused_or_unclear():
    cluster = DeviceCluster(device_cluster.plugin())
    for number in range(6):
        cluster.node(f"n{number}")
        cluster.devices(device(f"n{number}", gpu(0)))
    pod = cluster.pod("asked", {names.GPU: "60"})

    def passes_all():
        view = cluster.state.view()
        prepared = cluster.plugin.pre_filter(views.PodInfo.of(pod), view)
        found = cluster.plugin.passes_all(prepared, view, NOW)
        verdict = cluster.plugin.filter(prepared, view, views.every(view.known.size), NOW)
        assert found == (verdict is None)
        return found

    assert passes_all()
    assert cluster.bind(cluster.pod("large", {names.GPU: "50"}), "n1") == ""
    assert not passes_all()
    cluster.leave("large")
    assert passes_all()
    cluster.node("n6")
    assert passes_all(), "the kubelet judges nodes that say nothing of devices"
    cluster.devices(device("n6", gpu(0, health=False)))
    assert not passes_all()


def test_a_node_that_is_shown_as_it_is_not_passes_no_screen():
    cluster = filled("LeastAllocated", ())
    view = cluster.state.view()
    row = view.rows["n2"]
    prepared = cluster.plugin.pre_filter(
        views.PodInfo.of(cluster.pod("asked", {names.GPU: "50"})), view
    )
    shown = view.with_claims(row)
    assert not cluster.plugin.passes_all(prepared, shown, NOW)
