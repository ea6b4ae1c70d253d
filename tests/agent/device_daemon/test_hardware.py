"""Managers of hardware types on generated trees of /sys, with tools that answer from texts."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.device_daemon import output
from agent.device_daemon.hardware import cambricon, findings, huawei, kunlun, metax, registry
from agent.devices import device_inventory, vendor_records
from agent.host import files
from tests import draws
from tests.planes.devices import gpu_driver, pci_tree, vendor_tools

ASK = {
    "huawei": huawei.ask,
    "kunlun": kunlun.ask,
    "cambricon": cambricon.ask,
    "metax": metax.ask,
}
each_vendor = pytest.mark.parametrize("vendor", vendor_tools.VENDORS)


class Host:
    """A host, and what the managers find there."""

    def __init__(self, folder):
        self.folder, self.tree = folder, pci_tree.PciTree(folder / "sys")
        self.tools, self.driver = vendor_tools.Scripted({}), None

    def load(self):
        if self.driver is None:
            raise device_inventory.DriverError("no library", device_inventory.Failure.UNLOADED)
        return self.driver

    def plug(self, vendor):
        vendor_tools.plug(self.tree, vendor, self.folder / "dev")
        self.tools.answers |= vendor_tools.VENDORS[vendor]

    def look(self, name):
        here = findings.Host(
            str(self.tree.sys), str(self.folder / "dev"), self.tools.run, self.load
        )
        return registry.HARDWARE[name](here, 0.0)

    def told(self):
        return [self.look(name) for name in registry.HARDWARE]


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def place(bus):
    return {"socketID": "-1", "nodeID": "0", "pcieID": "pci0000:3a", "busID": bus}


GOOD = {"healthy": True, "errCode": "", "errMessage": ""}
RECORDS = {
    "huawei": {
        "vendor": "huawei",
        "model": "Ascend-910B3",
        "uuid": "npu-1-0",
        "minor": "0",
        "resources": {
            "koordinator.sh/gpu-memory": "65536Mi",
            "huawei.com/npu-cpu": "7",
            "huawei.com/npu-core": "20",
            "huawei.com/npu-dvpp": "100",
        },
    },
    "kunlun": {
        "vendor": "kunlun",
        "model": "P800",
        "uuid": "xpu-0",
        "minor": "0",
        "resources": {"koordinator.sh/gpu-memory": "32768Mi", "koordinator.sh/gpu-core": "100"},
    },
    "cambricon": {
        "vendor": "cambricon",
        "model": "MLU370-X8",
        "uuid": "6f9e-0b1c",
        "minor": "0",
        "resources": {"koordinator.sh/gpu-memory": "49152Mi", "koordinator.sh/gpu-core": "100"},
    },
    "metax": {
        "vendor": "metax",
        "model": "MXC500",
        "uuid": "GPU-77",
        "minor": "0",
        "resources": {"koordinator.sh/gpu-memory": "64Gi", "koordinator.sh/gpu-core": "100"},
    },
}


@each_vendor
def test_the_file_has_the_documented_form(host, vendor):
    host.plug(vendor)
    found = host.look(vendor)
    assert found.problems == ()
    expected = RECORDS[vendor] | {"topology": place(vendor_tools.CARDS[vendor][0]), "status": GOOD}
    text = output.device_file(found.records, None)
    assert text == json.dumps([expected], indent=2) + "\n"


@each_vendor
def test_the_node_agent_reads_what_is_written(host, vendor):
    host.plug(vendor)
    text = output.device_file(host.look(vendor).records, "2026-01-01T00:00:00Z")
    assert json.loads(text)[0]["timestamp"] == "2026-01-01T00:00:00Z"
    records = msgspec.json.decode(text, type=list[vendor_records.Record])
    found = vendor_records.found_in(records)
    (one,) = found.devices
    assert found.problems == ()
    assert (one.identity, one.minor, one.healthy) == (RECORDS[vendor]["uuid"], 0, True)
    assert one.place.bus == vendor_tools.CARDS[vendor][0]


@each_vendor
def test_without_a_card_no_tool_is_run(host, vendor):
    # An adapter and the graphics of a server board are of the same vendors.
    number = vendor_tools.CARDS[vendor][1]
    host.tree.add("0000:01:00.0", vendor=number, kind="0x020000")
    host.tree.add("0000:02:00.0", vendor="0x19e5", kind="0x030000", product="0x1711")
    assert host.look(vendor) == findings.Findings()
    assert host.tools.asked == []


@pytest.mark.parametrize(
    ("vendor", "question", "answer", "code"),
    [
        ("huawei", "npu-smi info -t board -i 1", "Chip Fault : 2\n", "chip error"),
        ("metax", "mx-smi --count-ecc -i 0", "DRAM double bit : 1\n", "ECC error"),
        ("cambricon", "cnmon info -c 0", None, ""),
    ],
)
def test_a_card_that_its_tool_calls_faulty_is_unhealthy(host, vendor, question, answer, code):
    host.plug(vendor)
    worse = host.tools.answers[question].replace("Good", "Bad Device")
    host.tools.answers[question] = worse if answer is None else answer
    found = host.look(vendor)
    (one,) = found.records
    assert (one.status.healthy, one.status.err_code) == (False, code)
    assert one.status.err_message
    assert [card.healthy for card in found.cards] == [False]


def test_an_older_npu_has_the_memory_and_cores_of_its_model(host):
    host.plug("huawei")
    host.tools.answers["npu-smi info -m"] = "NPU ID Chip Name\n1 0 0 Ascend 310P3\n"
    host.tools.answers["npu-smi info -t cpu-num-cfg -i 1 -c 0"] = "AI CPU number : 3\n"
    del host.tools.answers["npu-smi info -t memory -i 1"]
    (one,) = host.look("huawei").records
    assert one.model == "Ascend-310P3"
    assert one.resources == {
        "koordinator.sh/gpu-memory": "21527Mi",
        "huawei.com/npu-cpu": "3",
        "huawei.com/npu-core": "8",
        "huawei.com/npu-dvpp": "100",
    }


def test_files_of_npus_are_paired_by_number_and_not_by_name(host):
    for minor in range(11):
        host.tree.add(f"0000:{0x60 + minor:02x}:00.0", vendor="0x19e5", kind="0x120000")
        (host.folder / "dev").mkdir(exist_ok=True)
        (host.folder / f"dev/davinci{minor}").touch()
    answers = vendor_tools.HUAWEI | {
        "npu-smi info -l": "".join(f"NPU ID : {n}\n" for n in range(11)),
        "npu-smi info -t common -i 0": "Aicore Count : 20\n",
    }
    for n in range(11):
        bus = f"PCIe Bus Info : 0000:{0x60 + n:02x}:00.0\nChip Fault : 0\n"
        answers[f"npu-smi info -t board -i {n}"] = bus
        answers[f"npu-smi info -t memory -i {n}"] = "HBM Capacity(MB) : 65536\n"
    host.tools.answers = answers
    records = host.look("huawei").records
    assert [one.uuid for one in records] == [f"npu-{n}-{n}" for n in range(11)]
    assert records[10].topology.bus == "0000:6a:00.0"


@each_vendor
def test_a_tool_that_fails_leaves_what_sysfs_tells(host, vendor):
    host.plug(vendor)
    host.tools.answers.clear()
    found = host.look(vendor)
    assert found.silent
    assert found.records == ()
    (card,) = found.cards
    assert (card.bus, card.healthy, card.node) == (vendor_tools.CARDS[vendor][0], None, 0)
    assert found.labels == {"node.koordinator.sh/gpu-vendor": vendor}
    assert "exit code 1" in found.problems[0]


def test_a_card_that_cannot_be_asked_hides_no_other(host):
    host.plug("cambricon")
    host.tree.add("0000:5c:00.0", vendor="0xcabc", kind="0x120000")
    host.tools.answers["cnmon -l"] += "Card 1: MLU370-X8 (UUID: 70aa)\n"
    found = host.look("cambricon")
    assert [one.minor for one in found.records] == ["0"]
    assert any(problem.startswith("MLU 1: ") for problem in found.problems)
    assert "2 are plugged in, the tool tells 1" in found.problems


def test_what_a_tool_said_lasts_one_failure_then_it_is_unhealthy_and_goes_with_its_card(host):
    host.plug("metax")
    good = host.look("metax")
    host.tools.answers.clear()
    failed = host.look("metax")
    once = findings.remembered(good, failed, 1)
    assert once.records == good.records
    assert once.labels["node.koordinator.sh/gpu-model"] == "MXC500"
    (one,) = findings.remembered(good, failed, 2).records
    assert (one.status.healthy, one.status.err_code) == (False, "DriverNotAnswering")
    host.tree.remove("0000:6b:00.0")
    assert findings.remembered(good, host.look("metax"), 2) == findings.Findings()


def test_gpus_of_nvidia_with_and_without_their_driver(host):
    gpus = [gpu_driver.gpu(0), gpu_driver.gpu(1)]
    for one in gpus:
        host.tree.add_gpu(one.bus)
    bare = host.look("nvidia")
    assert [(card.bus, card.healthy, card.identity) for card in bare.cards] == [
        ("0000:3b:00.0", None, ""),
        ("0000:3c:00.0", None, ""),
    ]
    assert bare.labels == {"node.koordinator.sh/gpu-vendor": "nvidia"}
    assert bare.problems == ("no library",)
    host.driver = gpu_driver.Scripted(gpus)
    told = host.look("nvidia")
    assert [(card.identity, card.minor, card.healthy) for card in told.cards] == [
        ("GPU-0", 0, True),
        ("GPU-1", 1, True),
    ]
    assert told.labels["node.koordinator.sh/gpu-model"] == "A100-SXM4-80GB"
    assert told.records == (), "the node agent asks NVML itself"
    assert not host.driver.open


def test_npus_without_a_tool_by_class_and_by_kernel_driver(host):
    host.tree.add("0000:b1:00.0", vendor="0x1da3", kind="0x120000", node=1)
    driven = host.tree.add("0000:b2:00.0", vendor="0x1da3", kind="0x088000")
    (driven / "accel/accel0").mkdir(parents=True)
    (host.tree.sys / "class/accel").mkdir(parents=True)
    (host.tree.sys / "class/accel/accel0").symlink_to(driven / "accel/accel0")
    host.plug("kunlun")
    found = host.look("processing")
    assert [(card.bus, card.node) for card in found.cards] == [
        ("0000:b1:00.0", 1),
        ("0000:b2:00.0", 0),
    ]
    assert found.labels == {"node.koordinator.sh/gpu-vendor": "habana"}
    host.tree.add("0000:b3:00.0", vendor="0x1e36", kind="0x120000")
    assert host.look("processing").labels == {}


def test_fpgas_by_maker_and_by_manager_of_the_kernel(host):
    board = host.tree.add("0000:c1:00.0", vendor="0x10ee", kind="0x120000")
    host.tree.add("0000:c2:00.0", vendor="0x10ee", kind="0x020000")
    managers = host.tree.sys / "class/fpga_manager"
    managers.mkdir(parents=True)
    states = {"fpga0": (board, "operating"), "fpga1": (host.tree.sys / "soc", "write error")}
    for name, (parent, state) in states.items():
        folder = parent / "fpga_manager" / name
        folder.mkdir(parents=True)
        (folder / "state").write_text(f"{state}\n")
        (managers / name).symlink_to(folder)
    assert [(card.bus, card.identity, card.healthy) for card in host.look("fpga").cards] == [
        ("0000:c1:00.0", "fpga0", True),
        ("", "fpga1", False),
    ]


def test_labels_and_annotation_of_a_node_with_everything(host):
    host.plug("huawei")
    host.tree.add_gpu("0000:3c:00.0")
    host.tree.add_adapter("0000:d8:00.0", "mlx5_0", functions=("0000:d8:00.1",))
    host.tree.add("0000:c1:00.0", vendor="0x1172", kind="0x120000")
    told = host.told()
    values = output.labels(told)
    assert values == {
        # GPUs of NVIDIA come first; the model of the NPU is not theirs.
        "node.koordinator.sh/gpu-vendor": "nvidia",
        "koord.sh/gpu-count": "1",
        "koord.sh/npu-count": "1",
        "koord.sh/rdma-count": "1",
        "koord.sh/fpga-count": "1",
    }
    assert set(values) <= set(output.LABELS)
    assert output.labels_file(values, None) == "".join(
        f"{key}={values[key]}\n" for key in sorted(values)
    )
    assert "koord.sh/devices-timestamp=17\n" in output.labels_file(values, 17)
    kinds = json.loads(output.annotation(told))
    assert kinds["npu"] == [
        {"bus": "0000:3b:00.0", "id": "npu-1-0", "minor": 0, "numaNode": 0, "healthy": True}
    ]
    assert kinds["gpu"] == [{"bus": "0000:3c:00.0", "numaNode": 0}]
    assert [one["bus"] for one in kinds["rdma"]] == ["0000:d8:00.0"]


def test_nothing_is_said_of_a_node_without_devices(host):
    told = host.told()
    assert (output.labels(told), output.annotation(told)) == ({}, "")
    assert output.device_file((), None) == "[]\n"


def test_an_annotation_stays_short():
    cards = tuple(findings.Card("npu", f"{n:04x}:00:00.0", "x" * 60, n) for n in range(4096))
    text = output.annotation([findings.Findings(cards)])
    assert len(text) <= output.LONGEST_ANNOTATION
    assert json.loads(text)["npu"][0] == {"bus": "0000:00:00.0"}


@pytest.mark.parametrize("name", ["vendor", "class", "numa_node", "device"])
@pytest.mark.parametrize(
    "text",
    [b"", b"\xff\xfe\x00", b"-9" * 70_000, b"0x10de\n" * 3],
    ids=["empty", "bytes", "long", "lines"],
)
def test_garbage_in_sysfs_costs_only_the_device_that_has_it(host, name, text):
    host.plug("metax")
    host.tree.add_gpu("0000:01:00.0")
    (host.tree.sys / f"bus/pci/devices/0000:01:00.0/{name}").write_bytes(text)
    (host.tree.sys / "bus/pci/devices/nonsense").symlink_to("/nowhere")
    told = dict(zip(registry.HARDWARE, host.told(), strict=True))
    assert [card.bus for card in told["metax"].cards] == ["0000:6b:00.0"]
    assert told["metax"].problems == ()


@each_vendor
@settings(max_examples=draws.at_least(40), deadline=None)
@given(data=st.data())
def test_whatever_a_tool_prints_is_an_answer_or_a_problem(vendor, data):
    answers = dict(vendor_tools.VENDORS[vendor])
    texts = st.text(alphabet="ABFGMUID0123456789 :.-\n\tµ\x00", max_size=80)
    for question in data.draw(st.sets(st.sampled_from(sorted(answers)), min_size=1)):
        cut = data.draw(st.integers(0, len(answers[question])))
        answers[question] = (
            answers[question][:cut] + data.draw(texts) + answers[question][cut + 3 :]
        )
    host = findings.Host("/nowhere", "/nowhere", vendor_tools.Scripted(answers).run, lambda: None)
    try:
        answer = ASK[vendor](host)
    except files.ReadingError:
        return
    for one in answer.devices:
        record = vendor_records.Record(uuid=one.uuid, minor=str(one.minor), resources=one.resources)
        assert json.loads(output.device_file([record], None))
