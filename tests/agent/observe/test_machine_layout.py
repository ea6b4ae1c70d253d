"""How machines are built, from the files of several kinds of them."""

import dataclasses

import msgspec
import pytest

from agent.host import files
from agent.model import state
from agent.model.cpus import kubelet_cpu_manager
from agent.observe import machine_layout
from agent.observe.node import cpu_topology
from api import names
from simulator.kubelet import machines

MIB = 1 << 20
INTEL = machines.Machine(machines.grid(1, 1, 4, 2), turbo=True, cache_mask="7ff")
TWO = machines.Machine(machines.grid(2, 1, 2, 2), turbo=False, node_mib=2048)
# Two NUMA nodes in one socket; every two cores have a last-level cache of their own.
EPYC = machines.Machine(
    machines.grid(1, 2, 4, 2, cores_per_cache=2), model="AMD EPYC 7763", vendor="AuthenticAMD"
)
ARM = machines.Machine(machines.grid(1, 2, 4), model="", caches=False, siblings=False)
GUEST = machines.Machine(machines.grid(1, 1, 4), caches=False, siblings=False)
HALF = dataclasses.replace(TWO, offline=frozenset({1, 5, 7}))
CXL = dataclasses.replace(
    INTEL,
    memory_only=frozenset({1}),
    initiators=frozenset({2}),
    huge={0: {2048: 10, 1048576: 1}},
)


@pytest.fixture(scope="module")
def looked(tmp_path_factory):
    """What is read of a machine; its files are written once."""
    kept, folders = files.Kept(), {}

    def look(machine, **habits):
        folder = folders.get(repr(machine))
        if folder is None:
            folder = folders[repr(machine)] = tmp_path_factory.mktemp("machine")
            machines.write(folder / "sys", folder / "proc", machine)
        reader = cpu_topology.Machine(str(folder / "sys"), str(folder / "proc"), **habits)
        found = reader.look(0.0, kept)
        assert reader.problem == ""
        return found

    yield look
    kept.close()


def places(found):
    return {p.cpu: (p.core, p.socket, p.node) for p in found.processors}


def sharing(found, level):
    groups = {}
    for one in found.processors:
        groups.setdefault(one.caches[level], []).append(one.cpu)
    return list(groups.values())


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (INTEL, {cpu: (cpu % 4, 0, 0) for cpu in range(8)}),
        (TWO, {cpu: (cpu % 4, cpu % 4 // 2, cpu % 4 // 2) for cpu in range(8)}),
        (EPYC, {cpu: (cpu % 8, 0, cpu % 8 // 4) for cpu in range(16)}),
        (ARM, {cpu: (cpu, 0, cpu // 4) for cpu in range(8)}),
        (GUEST, {cpu: (cpu, 0, 0) for cpu in range(4)}),
        (HALF, {0: (0, 0, 0), 2: (1, 1, 1), 3: (2, 1, 1), 4: (0, 0, 0), 6: (1, 1, 1)}),
        (CXL, {cpu: (cpu % 4, 0, 0) for cpu in range(8)}),
    ],
    ids=["intel", "two sockets", "amd", "arm64", "guest", "offline", "cxl"],
)
def test_where_cpus_sit(looked, machine, expected):
    assert places(looked(machine)) == expected


def test_cores_are_told_apart_where_only_their_numbers_are_known(looked):
    bare = dataclasses.replace(TWO, siblings=False)
    assert places(looked(bare)) == places(looked(TWO))


def test_caches(looked):
    found = looked(EPYC)
    assert sharing(found, 0) == sharing(found, 1) == [[cpu, cpu + 8] for cpu in range(8)]
    expected = [[a, a + 1, a + 8, a + 9] for a in range(0, 8, 2)]
    assert sharing(found, 2) == expected
    assert sharing(looked(TWO), 2) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert all(one.caches == () for one in looked(GUEST).processors)


def test_memory_of_numa_nodes(looked):
    assert looked(TWO).nodes == (state.NumaNode(0, 2048 * MIB), state.NumaNode(1, 2048 * MIB))
    # A device that starts accesses to memory is no place for pods.
    assert [node.number for node in looked(CXL).nodes] == [0, 1]
    huge = {names.HUGE_PAGES_2M: 20 * MIB, names.HUGE_PAGES_1G: 1024 * MIB}
    found = looked(CXL, huge_pages=True).nodes
    assert found[0].huge == huge
    assert found[1].huge == dict.fromkeys(huge, 0)


def test_what_the_processors_are(looked):
    model = "Simulated CPU @ 2.00GHz"
    assert looked(INTEL).info == state.ProcessorInfo(model, "GenuineIntel", True, True, "7ff")
    assert looked(EPYC).info == state.ProcessorInfo("AMD EPYC 7763", "AuthenticAMD", True)


def test_a_machine_that_names_no_model(looked):
    assert looked(ARM).info == state.ProcessorInfo()


@pytest.fixture
def kept():
    found = files.Kept()
    yield found
    found.close()


def test_threads_are_counted_where_the_kernel_does_not_tell_whether_they_are_on(tmp_path, kept):
    sys, proc = tmp_path / "sys", tmp_path / "proc"
    machines.write(sys, proc, INTEL)
    (sys / "devices/system/cpu/smt/active").unlink()
    assert cpu_topology.Machine(str(sys), str(proc)).look(0.0, kept).info.hyper_threads


def test_a_kernel_without_numa_has_one_node(tmp_path, kept):
    online = tmp_path / "devices/system/cpu/online"
    online.parent.mkdir(parents=True)
    online.write_text("0-1\n")
    (tmp_path / "meminfo").write_text("MemTotal:  1024 kB\nMemFree: 1 kB\n")
    found = cpu_topology.Machine(str(tmp_path), str(tmp_path)).look(0.0, kept)
    assert found.processors == (state.Processor(0, 0, 0, 0), state.Processor(1, 1, 0, 0))
    assert found.nodes == (state.NumaNode(0, MIB),)
    assert found.info == state.ProcessorInfo()


@pytest.mark.parametrize(
    ("file", "text"),
    [("cpu/online", "many"), ("node/node0/meminfo", "x"), ("node/node0/cpulist", "0-")],
)
def test_what_cannot_be_read_is_named_and_read_again(tmp_path, kept, file, text):
    sys, proc = tmp_path / "sys", tmp_path / "proc"
    machines.write(sys, proc, INTEL)
    broken = sys / "devices/system" / file
    whole = broken.read_text()
    broken.write_text(text)
    reader = cpu_topology.Machine(str(sys), str(proc))
    reader.look(0.0, kept)
    assert str(broken) in reader.problem
    broken.write_text(whole)
    found = reader.look(cpu_topology.AGAIN_SECONDS, kept)
    assert (len(found.processors), len(found.nodes)) == (8, 1)
    assert reader.problem == ""


def test_a_cpu_that_leaves_is_seen_at_once_and_nothing_new_is_the_same_object(tmp_path, kept):
    sys, proc = tmp_path / "sys", tmp_path / "proc"
    machines.write(sys, proc, TWO)
    reader = cpu_topology.Machine(str(sys), str(proc))
    first = reader.look(0.0, kept)
    assert reader.look(1.0, kept) is first
    assert reader.look(cpu_topology.SECONDS, kept) is first
    machines.write(sys, proc, HALF)
    assert [one.cpu for one in reader.look(61.0, kept).processors] == [0, 2, 3, 4, 6]


def test_standing_is_the_same_object_until_something_changes(tmp_path, kept, node):
    machines.write(tmp_path / "sys", tmp_path / "proc", TWO)
    place = machine_layout.Site(str(tmp_path / "sys"), str(tmp_path / "proc"), kept)
    told = machine_layout.Told(node, (), kubelet_cpu_manager.UNASKED)
    first = place.look(told, 0.0)
    assert place.look(msgspec.structs.replace(told), 1.0) is first
    assert place.look(msgspec.structs.replace(told, node=None), 2.0) is not first
    assert len(first.machine.processors) == 8
    assert first.kubelet == state.KubeletCpus()
