"""How this machine is built, as the agent reads it and as lscpu says it."""

import json
import shutil
import subprocess

import pytest

from agent.host import files
from agent.observe.node import cpu_topology, meminfo, numa_usage

FIELDS = "CPU,NODE,SOCKET,CORE,CACHE,ONLINE"


@pytest.fixture
def kept():
    found = files.Kept()
    yield found
    found.close()


@pytest.fixture
def machine(kept):
    reader = cpu_topology.Machine("/sys", "/proc", huge_pages=True)
    found = reader.look(0.0, kept)
    assert reader.problem == ""
    return found


@pytest.fixture
def told():
    """What lscpu says of every cpu that is online."""
    if shutil.which("lscpu") is None:
        pytest.skip("this machine has no lscpu")
    done = subprocess.run(
        ["lscpu", "-J", f"-e={FIELDS}"], capture_output=True, check=True, timeout=30
    )
    rows = json.loads(done.stdout)["cpus"]
    return {int(row["cpu"]): row for row in rows if row["online"] in (True, "yes")}


def groups(numbered):
    """Return who is together, whatever the number of the group is."""
    found = {}
    for cpu, number in numbered.items():
        found.setdefault(number, set()).add(cpu)
    return sorted(map(sorted, found.values()))


def test_cpus_sit_where_lscpu_says(machine, told):
    cpus = {one.cpu: one for one in machine.processors}
    assert set(cpus) == set(told)
    assert {cpu: one.node for cpu, one in cpus.items()} == {
        cpu: int(row["node"] or 0) for cpu, row in told.items()
    }
    for field in ("socket", "core"):
        ours = {cpu: getattr(one, field) for cpu, one in cpus.items()}
        assert groups(ours) == groups({cpu: row[field] for cpu, row in told.items()}), field


def test_last_level_caches_are_shared_as_lscpu_says(machine, told):
    column = next((name for name in next(iter(told.values())) if "l1d" in name), None)
    if column is None or not all(one.caches for one in machine.processors):
        pytest.skip("this machine does not tell of its caches")
    ours = {one.cpu: one.caches[-1] for one in machine.processors}
    assert groups(ours) == groups({cpu: row[column].split(":")[-1] for cpu, row in told.items()})


def test_the_kernel_tells_the_memory_of_every_node_and_the_time_of_every_cpu(machine):
    for node in machine.nodes:
        text = files.read(f"/sys/devices/system/node/node{node.number}/meminfo")
        used = meminfo.used(meminfo.figures(text, meminfo.of_node(node.number)))
        assert 0 < used < node.memory
    ticks = numa_usage.ticks_of_cpus(files.read("/proc/stat", 1 << 20))
    assert set(ticks) == {one.cpu for one in machine.processors}
    assert machine.info.model != "unknown"
