"""What is measured on request, from a real kernel: what it counts is what real processes did.

Run on this machine's groups of version 1, and on those of version 2 in the machine made for them.
"""

import contextlib
import ctypes
import os
import pathlib
import subprocess

import msgspec
import pytest
import pytest_asyncio

from agent.host import block_devices
from agent.model import cgroup_layout
from agent.observe import collectors
from agent.observe.cgroups import cycles_per_instruction, perf_event, pressure
from agent.observe.cold_memory import multigen_lru
from agent.observe.network import traffic
from agent.observe.node import kernel_features
from agent.observe.storage import disks
from process.runtime import metrics
from tests.planes.host import kubepods

BURN = "while :; do :; done"
MIB = 1 << 20
CACHED = 16 * MIB
UNIFIED = kubepods.ROOT / "unified"
DEBUG = pathlib.Path("/sys/kernel/debug")
MULTI_GEN = pathlib.Path("/sys/kernel/mm/lru_gen/enabled")
# Two events that every kernel has and that nobody can mistake for each other: of its two clocks,
# one counts a cgroup's time in leaps, so page faults take the place of instructions.
PAGE_FAULTS = 2
SOFTWARE = perf_event.Events(perf_event.SOFTWARE, perf_event.CPU_CLOCK, PAGE_FAULTS)
# Each subshell is a fork, and each fork some page faults.
FORK = "while :; do (:); done"


@pytest_asyncio.fixture
async def node(tmp_path):
    groups = kubepods.Groups(f"koord-measured-{os.getpid()}")
    try:
        node = kubepods.Node(groups, tmp_path)
        node.registry = metrics.Registry()
        yield node
        node.uninstall()
    finally:
        await groups.remove()


def watch(node, source):
    node.observer._collectors = collectors.Collectors([source])


def problem(node, name):
    return node.loop.picture.problems.get(name)


def newest(node, *key):
    series = node.observer.samples.get(key)
    return series.newest[1] if series is not None and series.newest else None


@contextlib.asynccontextmanager
async def counted(node, container, process):
    """See to it that a process is counted where version 1 has no hierarchy of its own for it."""
    if node.groups.version == 2:
        yield
        return
    if (kubepods.ROOT / "perf_event").is_dir() or not UNIFIED.is_dir():
        pytest.skip("no hierarchy of version 2 is mounted beside version 1")
    made = []
    try:
        for part in reversed([container, *pathlib.PurePosixPath(container).parents]):
            folder = UNIFIED / part
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        (UNIFIED / container / "cgroup.procs").write_text(str(process.pid))
        yield
    finally:
        # What it forked is still in there for a moment.
        node.groups.stop(process)
        await node.groups.drop(set(made))


def faulted(process):
    """Return the page faults of a process and of the children that it has waited for."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[7:11]))


async def test_what_a_processor_does_for_a_container_is_counted(node):
    _, container = node.pod("a", "Burstable")
    process = node.groups.start(container, FORK)
    habits = cycles_per_instruction.Habits(4.0, 2.0)
    made = cycles_per_instruction.Performance(node.registry, habits, perf_event.Kernel(SOFTWARE))
    async with counted(node, container, process):
        watch(node, made)
        before, faults = node.groups.cpu_seconds(container), faulted(process)
        await node.until(lambda: newest(node, "container", "a", "app", "cycles") is not None, 20)
        elapsed = node.groups.cpu_seconds(container) - before
        faults = faulted(process) - faults
        cycles = newest(node, "container", "a", "app", "cycles")
        instructions = newest(node, "container", "a", "app", "instructions")
        # Nanoseconds of what ran and its page faults, as the kernel's own accounts tell them
        # around the window: more cannot have been in it, and it is most of what lies between.
        assert elapsed * 0.2 < cycles / 1e9 <= elapsed * 1.1 + 0.1
        assert faults * 0.2 < instructions <= faults * 1.1 + 100
        assert problem(node, "performance") is None
        assert made.descriptors == 0


async def test_counters_that_a_machine_lacks_are_named(node):
    _, container = node.pod("a", "Burstable")
    process = node.groups.start(container, BURN)
    async with counted(node, container, process):
        habits = cycles_per_instruction.Habits(2.0, 1.0)
        watch(node, cycles_per_instruction.Performance(node.registry, habits, perf_event.Kernel()))
        await node.seconds(3)
        said = problem(node, "performance")
        assert said is None or "has no counters" in said or "CAP_PERFMON" in said
        assert said or newest(node, "container", "a", "app", "cycles")


@pytest.fixture
def place(node, tmp_path):
    """Where `dd` writes straight to a disk, and the disks that there are."""
    known = block_devices.look("/sys").disks
    (node.proc / "diskstats").write_text(pathlib.Path("/proc/diskstats").read_text())
    device = tmp_path.stat().st_dev
    if node.groups.version == 2 and pathlib.Path("/dev/vda").is_block_device():
        return "/dev/vda oflag=direct conv=notrunc", known
    number = f"{os.major(device)}:{os.minor(device)}"
    if number not in known:
        pytest.skip("there is no disk to write to")
    if node.groups.version == 1:
        begin_to_count(node, number)
    return f"{tmp_path}/written oflag=direct", known


def begin_to_count(node, number):
    """Set the limit of a disk with which version 1 begins to count (since Linux 6.10), to none."""
    _, group = node.pod("throttled", "Burstable")
    node.groups.write(cgroup_layout.File.IO_WRITE_BPS, group, f"{number} 0")


async def test_what_a_container_writes_to_a_disk_is_counted_once(node, place):
    place, known = place
    _, container = node.pod("a", "Burstable")
    watch(node, disks.Disks(node.registry, 0.5))
    script = f"dd if=/dev/zero of={place} bs=1M count=8"
    assert await node.groups.run(container, script) == 0
    labels = {"pod_namespace": "default", "pod_name": "a", "direction": "write"}

    def written(of="app"):
        name = "koord_agent_disk_bytes_total"
        return node.registry.value(name, labels | {"container": of}) or 0

    await node.until(lambda: written() >= 8 * MIB, 20)
    assert written() < 16 * MIB
    assert written("") >= written()
    name = "koord_agent_node_disk_bytes_total"
    assert node.registry.value(name, {"disk": next(iter(known.values())), "direction": "write"})
    await node.remove("a")
    await node.seconds(1)
    assert node.registry.value(name, labels | {"container": "app"}) is None


@pytest.fixture
def wire():
    """How a network of its own gets two interfaces that talk to each other."""
    ready = "ip link add one type veth peer name other"
    ready += " && ip link set one up && ip link set other up"
    tried = subprocess.run(["unshare", "-n", "sh", "-c", ready], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("no network of a pod can be made here")
    return ready


async def test_what_a_pod_sends_is_seen_through_its_processes(node, wire):
    _, container = node.pod("a", "Burstable")
    # Two ends of one wire look for their neighbours as soon as they are up.
    node.groups.start(container, f"exec unshare -n sh -c '{wire}; sleep 100'")
    arranged = node.observer.layout
    node.observer.layout = msgspec.structs.replace(arranged, proc="/proc")
    watch(node, traffic.Traffic(node.registry, 0.5))
    labels = {"pod_namespace": "default", "pod_name": "a", "direction": "sent"}

    def sent():
        return node.registry.value("koord_agent_network_bytes_total", labels) or 0

    if not kernel_features.names_processes():
        await node.seconds(1)
        assert "process ids" in problem(node, "network")
        return
    await node.until(lambda: sent() > 0, 20)
    assert sent() < 100_000
    assert problem(node, "network") is None


async def test_how_long_tasks_wait_is_told_where_the_kernel_says_it(node):
    _, container = node.pod("a", "Burstable")
    node.groups.limit(container, 10_000)
    node.groups.start(container, BURN)
    watch(node, pressure.Pressures(node.registry, 0.5))
    await node.seconds(1)
    said = problem(node, "pressure")
    if node.groups.version == 1 and said:
        assert "vendors' kernels" in said
        return
    labels = {"pod_namespace": "default", "pod_name": "a", "container": "app"}
    labels |= {"resource": "cpu", "kind": "some"}
    name = "koord_agent_pressure_ratio"
    await node.until(lambda: (node.registry.value(name, labels) or 0) > 0.05, 20)


def aged(group):
    """Have the kernel begin another generation of a group, as a tool for it does."""
    # A group of the same name that is gone may still be listed, before the one that is there.
    before, _, rest = (DEBUG / "lru_gen").read_text().rpartition(f" /{group}\n")
    lines = (line.split() for line in rest.partition("memcg")[0].splitlines())
    numbers = [words[0] for words in lines if len(words) == 4]
    (DEBUG / "lru_gen").write_text(f"+ {before.split()[-1]} 0 {numbers[-1]}\n")


@pytest.fixture
def multi_generation():
    """The kernel's page reclaim by generations, and the file that shows them."""
    if kubepods.version() == 1 or not MULTI_GEN.exists():
        pytest.skip("multi-gen LRU is looked at on a machine of our own that has it")
    libc = ctypes.CDLL(None, use_errno=True)
    if not (DEBUG / "lru_gen").exists():
        assert libc.mount(b"none", str(DEBUG).encode(), b"debugfs", 0, None) == 0
    MULTI_GEN.write_text("7")


@pytest.mark.usefixtures("multi_generation")
async def test_page_cache_that_nobody_touches_is_cold_by_the_kernels_generations(node):
    _, container = node.pod("a", "Burstable")
    # The last one who closes a disk drops what was read of it.
    read = f"dd if=/dev/vda of=/dev/null bs=1M count={CACHED // MIB}"
    node.groups.start(container, f"exec 3< /dev/vda; {read}; sleep 100")
    file = node.groups.layout.path(cgroup_layout.File.MEMORY_STAT, container)

    def cached():
        lines = pathlib.Path(file).read_text().splitlines()
        return int(next(line for line in lines if line.startswith("file ")).split()[1])

    await node.until(lambda: cached() >= CACHED, 30)
    assert multigen_lru.cold("/sys", 0.5)[container] < CACHED
    for _ in range(4):
        await node.seconds(0.5)
        aged(container)
    found = multigen_lru.cold("/sys", 0.5)
    assert CACHED * 0.75 <= found[container] <= cached() + MIB
    assert found[node.groups.layout.qos_group("Guaranteed")] >= found[container]
