"""Nodes are judged and scored alike one by one and all together, remembered or not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from extender.framework import views
from extender.plugins.device_share import judgement
from tests.extender import device_cluster
from tests.extender.device_cluster import NAME, NOW, DeviceCluster, device, gpu, rdma

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
    view, pod = cluster.state.view(), cluster.pod("asked", {names.GPU: "50"})
    together = answers(cluster.plugin, view, pod, views.every(view.known.size))
    alone = device_cluster.plugin(scoringStrategy={"type": "LeastAllocated"})
    assert [answers(alone, view, pod, np.array([row]))[0] for row in range(8)] == together
    (known,) = alone._judgement._classes.values()
    assert len(known) <= 2
