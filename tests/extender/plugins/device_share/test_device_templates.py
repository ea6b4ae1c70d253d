"""Slices of NPUs by templates, which change while the extender runs."""

import pytest

from api import names
from api.kubernetes import core
from extender.informers.configuration import gpu_templates as informer
from extender.state import deltas
from kube.informers import store
from tests.extender.clusters.device_cluster import DeviceCluster, device

TEXT = """
huawei-Ascend-910B4:
  small: {huawei.com/npu-core: "5", huawei.com/npu-cpu: "1", koordinator.sh/gpu-memory: 8Gi}
"""
SLICE = {
    names.GPU_SHARED: "1",
    names.NPU_CORE: "5",
    names.NPU_CPU: "1",
    names.GPU_MEMORY: "8Gi",
}
LABELS = {names.LABEL_GPU_VENDOR: "huawei", names.LABEL_GPU_MODEL: "Ascend-910B4"}
NOTHING = "no matched GPU shared resource template"


def npu(minor):
    resources = {
        names.NPU_CORE: "20",
        names.NPU_CPU: "7",
        names.GPU_MEMORY: "32Gi",
        names.GPU_MEMORY_RATIO: "100",
    }
    return {"type": "gpu", "minor": minor, "id": f"NPU-{minor}", "health": True,
            "resources": resources}  # fmt: skip


class Books:
    def __init__(self, cluster):
        self.cluster = cluster


class Cluster(DeviceCluster):
    def __init__(self):
        super().__init__()
        self.maps = store.Store()
        informer.connect(self.maps, Books(self.state))
        self.version = 0
        self.node(labels=LABELS)
        self.devices(device("n1", npu(0), npu(1)))

    def write(self, text):
        self.version += 1
        name = names.CONFIG_MAP_GPU_TEMPLATES
        meta = store.Meta(f"{names.NAMESPACE}/{name}", "uid", self.version)
        self.maps.put(meta, core.ConfigMap(data={informer.KEY: text}))


@pytest.fixture
def cluster():
    return Cluster()


def test_a_slice_is_recorded_with_its_template(cluster):
    cluster.write(TEXT)
    assert cluster.bind(cluster.pod("one", SLICE)) == ""
    (given,) = cluster.annotation("one")["gpu"]
    assert given["extension"] == {"gpuSharedResourceTemplate": "small"}
    assert given["resources"][names.NPU_CORE] == "5"
    assert cluster.state.rebuilt().fingerprint() == cluster.state.fingerprint()
    for number in range(7):
        assert cluster.bind(cluster.pod(f"more-{number}", SLICE)) == "", "four on each"
    assert cluster.refusal(cluster.pod("last", SLICE)).startswith("Insufficient")
    other = cluster.pod("other", SLICE | {names.GPU_MEMORY: "9Gi"})
    assert cluster.refusal(other) == NOTHING


def test_other_models_are_refused_and_a_change_of_templates_wakes_pods(cluster):
    pod = cluster.pod("one", SLICE)
    assert cluster.refusal(pod) == NOTHING
    told = []
    cluster.state.followers.append(told.append)
    cluster.write(TEXT.replace("910B4", "910B3"))
    assert cluster.refusal(pod) == NOTHING
    assert [cluster.plugin.could_help(None, one) for one in told] == [True]
    cluster.write(TEXT)
    assert cluster.refusal(pod) == ""


def test_a_text_that_cannot_be_read_leaves_the_last_one_in_force(cluster, caplog):
    cluster.write(TEXT)
    with caplog.at_level("WARNING", logger=informer.logger.name):
        cluster.write("huawei-Ascend-910B4: [")
    assert cluster.refusal(cluster.pod("one", SLICE)) == ""
    assert "stays as it was" in caplog.text
    cluster.write("")
    assert cluster.refusal(cluster.pod("one", SLICE)) == NOTHING


def test_where_several_templates_are_alike_none_is_named(cluster):
    cluster.write(TEXT + TEXT.splitlines()[2].replace("small", "alike") + "\n")
    assert cluster.bind(cluster.pod("one", SLICE)) == ""
    assert "extension" not in cluster.annotation("one")["gpu"][0]


def test_whole_npus_need_no_template(cluster):
    whole = {names.NPU_CORE: "20", names.GPU_MEMORY_RATIO: "100"}
    assert cluster.bind(cluster.pod("one", whole)) == ""
    assert "extension" not in cluster.annotation("one")["gpu"][0]
    assert cluster.state.told(deltas.GPU_TEMPLATES, names.CONFIG_MAP_GPU_TEMPLATES) is None
