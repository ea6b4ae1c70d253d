"""Cold page cache, from whichever part of the kernel keeps count of it."""

import pytest

from agent.host import files
from agent.observe import collectors
from agent.observe.cold_memory import cold_memory, damon, multigen_lru
from process.runtime import metrics

MIB = 1 << 20
# Four generations of one group: the youngest began 10 s ago, so that is when the kernel looked.
SHOWN = """memcg     1 /
 node     0
          0    9000000          5        100x
          1     900000          5         20
          2     320000          5          4
          3      10000          5          2
memcg    42 /kubepods.slice/kubepods-poda.slice
 node     0
          7     700000          0         64
          8     310000          0         32
          9          0          0       1000
 node     1
          0     500000          0          1
          1     400000          0          1
memcg    43 /kubepods.slice/kubepods-poda.slice/cri-containerd-c.scope
 node     0
          1     800000          0          8
          2     350000          0          8
          3          0          0          8
"""


@pytest.mark.parametrize(
    ("group", "pages"),
    [
        ("", 100 + 20 + 64 + 8),
        ("kubepods.slice", 64 + 8),
        ("kubepods.slice/kubepods-poda.slice", 64 + 8),
        ("kubepods.slice/kubepods-poda.slice/cri-containerd-c.scope", 8),
    ],
)
def test_generations(group, pages):
    assert multigen_lru.parse(SHOWN, 300, 4096)[group] == pages * 4096


@pytest.mark.parametrize("text", ["", "memcg 1 /\n node 0\n", "memcg 1 /\n node 0\n 1 99999 1 1\n"])
def test_generations_that_tell_nothing(text):
    assert set(multigen_lru.parse(text, 300, 4096).values()) <= {0}


def test_what_is_no_generation():
    with pytest.raises(files.ReadingError, match="no generation"):
        multigen_lru.parse("memcg 1 /\n node 0\n 1 old 1 many\n", 300, 4096)


SCHEME = {
    "state": "on",
    "refresh_ms": "1000",
    "contexts/0/operations": "paddr",
    "contexts/0/monitoring_attrs/intervals/aggr_us": "500000",
    "contexts/0/schemes/0/action": "stat",
    "contexts/0/schemes/0/access_pattern/nr_accesses/max": "0",
    "contexts/0/schemes/0/access_pattern/age/min": "600",
    "contexts/0/schemes/0/ops_filters/0/type": "anon",
    "contexts/0/schemes/0/ops_filters/0/matching": "Y",
    "contexts/0/schemes/0/ops_filters/0/allow": "N",
    "contexts/0/schemes/0/tried_regions/0/sz_filter_passed": str(3 * MIB),
    "contexts/0/schemes/0/tried_regions/1/sz_filter_passed": str(4 * MIB),
}


def observed(sys, **changes):
    for name, text in (SCHEME | changes).items():
        path = sys / damon.FOLDER / "0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def test_a_scheme_that_counts(tmp_path):
    observed(tmp_path)
    assert damon.cold(str(tmp_path), 300) == {"": 7 * MIB}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("state", "off"),
        ("refresh_ms", "0"),
        ("contexts/0/operations", "vaddr"),
        ("contexts/0/schemes/0/action", "pageout"),
        ("contexts/0/schemes/0/access_pattern/nr_accesses/max", "1"),
        ("contexts/0/schemes/0/access_pattern/age/min", "12"),
        ("contexts/0/schemes/0/ops_filters/0/type", "unmapped"),
        ("contexts/0/schemes/0/ops_filters/0/allow", "Y"),
    ],
)
def test_schemes_for_something_else(tmp_path, name, text):
    observed(tmp_path, **{name: text})
    with pytest.raises(files.ReadingError, match="no scheme"):
        damon.cold(str(tmp_path), 300)


@pytest.fixture
def measured(host):
    host.add("a", "Burstable", 500, 512 * MIB)
    host.registry = metrics.Registry()
    made = cold_memory.Coldness(host.registry, 5.0)
    host.observer._collectors = collectors.Collectors([made])
    return host


def node(host, source):
    return host.registry.value("koord_agent_node_cold_page_bytes", {"source": source})


def pod(host, container=""):
    labels = {"pod_namespace": "default", "pod_name": "name-a", "container": container}
    return host.registry.value("koord_agent_cold_page_bytes", labels)


def shown(host, cold=16):
    """Write what the kernel shows of the groups of the pod, and return the file."""
    (one,) = host.look().pods
    text = "memcg 1 /\n node 0\n 0 900000 0 1\n 1 0 0 1\n"
    for group in (one.group, one.containers[0].group):
        text += f"memcg 2 /{group}\n node 0\n 0 900000 0 {cold}\n 1 400000 0 0\n 2 0 0 9\n"
    file = host.tree.sys / multigen_lru.FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_the_nearest_that_works_is_taken_and_named(measured):
    said = measured.step().problems["cold pages of groups"]
    assert "kidled" in said
    assert "generations" in said
    assert "damon" in said
    observed(measured.tree.sys)
    assert "cold pages of groups" not in measured.step(5).problems
    assert node(measured, "damon") == 7 * MIB
    assert pod(measured) is None
    file = shown(measured)
    measured.step(5)
    page = multigen_lru.mmap.PAGESIZE
    assert (node(measured, "damon"), node(measured, "generations")) == (None, 32 * page)
    assert (pod(measured), pod(measured, "app")) == (32 * page, 16 * page)
    samples = measured.observer.samples
    assert samples.get(("pod", "a", "cold")).newest[1] == 32 * page
    assert samples.get(("node", "cold")).newest[1] == 32 * page
    file.write_text("memcg 1 /\n node 0\n 1 x 1 1\n")
    (measured.tree.sys / damon.FOLDER / "0" / "state").write_text("off\n")
    assert "no generation" in measured.step(5).problems["cold pages of groups"]
    assert pod(measured) is None


def test_hot_memory_is_made_of_it(measured):
    measured.observer.figures.with_hot = True
    assert "they are not counted" in measured.step().problems["cold pages"]
    shown(measured)
    picture = measured.step(cold_memory.SECONDS)
    assert "cold pages" not in picture.problems
    hot = measured.observer.samples.get(("pod", "a", "memory+hot")).newest[1]
    assert hot == 512 * MIB - 32 * multigen_lru.mmap.PAGESIZE


def test_nothing_outlives_its_pod(measured):
    shown(measured)
    measured.step(5)
    assert pod(measured, "app")
    measured.know(pods=())
    measured.step(5)
    assert pod(measured, "app") is None
    assert node(measured, "generations") is not None
    measured.observer.close()
    assert node(measured, "generations") is None
