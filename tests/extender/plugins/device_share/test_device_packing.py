"""LeastFragmented: pods go where they leave GPUs usable for the tasks that are expected."""

import pytest

from api import names
from extender.framework import views
from tests.extender.clusters import device_cluster
from tests.extender.clusters.device_cluster import DeviceCluster, deltas, device, gpu

WHOLE, SHARE = {names.NVIDIA_GPU: "1"}, {names.GPU: "30"}
SELECTOR = '{"gpu":{"selector":{"matchLabels":{"node.koordinator.sh/gpu-model":"A100"}}}}'
HINT = {names.ANNOTATION_DEVICE_HINT: SELECTOR}


@pytest.fixture
def cluster():
    """Two nodes with A100s and one with T4s."""
    made = DeviceCluster(device_cluster.plugin(scoringStrategy={"type": "LeastFragmented"}))
    for name, model in (("a", "A100"), ("b", "A100"), ("t", "T4")):
        made.node(name)
        marked = {names.LABEL_GPU_MODEL: model}
        made.devices(device(name, gpu(0, labels=marked), gpu(1, labels=marked)))
    return made


def wait_for_a_whole_a100(cluster):
    """Let nine jobs wait; return the last one."""
    for number in range(9):
        waits = cluster.pod(f"job-{number}", WHOLE, annotations=HINT)
        cluster.state.apply(deltas.ObjectDelta(views.UNSCHEDULED_POD, waits.uid, None, waits))
    return waits


def test_pods_go_where_gpus_stay_usable_for_the_others(cluster):
    """Jobs of a whole A100 wait: a share goes to the GPU that is in use, or to another model."""
    waits = wait_for_a_whole_a100(cluster)
    assert cluster.refusal(waits, "t") == "Insufficient GPU Devices"
    share = cluster.pod("share", SHARE)
    scores = cluster.scores(share)
    assert scores["t"] > scores["a"] == scores["b"]
    cluster.bind(cluster.pod("first", SHARE, annotations=HINT), "b")
    share = cluster.pod("second", SHARE, annotations=HINT)
    scores = cluster.scores(share)
    assert scores["b"] > scores["a"]
    cluster.bind(share, "b")
    assert cluster.minors("first") == cluster.minors("second")
    plain = cluster.pod("plain", {"cpu": "1"})
    assert cluster.refusal(plain, "a") == ""
    assert set(cluster.scores(plain)) == {"a", "b", "t"}


def test_scores_follow_the_tasks_that_are_expected(cluster):
    """What was worked out before jobs came to wait is not what counts once they do."""
    share = cluster.pod("share", SHARE)
    before = cluster.scores(share)
    assert before["t"] == before["a"] == before["b"]
    wait_for_a_whole_a100(cluster)
    scores = cluster.scores(share)
    assert scores["t"] > scores["a"] == scores["b"]
