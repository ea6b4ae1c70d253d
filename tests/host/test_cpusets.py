"""Allocated CPUs on a real kernel: on which CPUs processes may run, and who else may.

Run on this machine's cgroups of version 1, and on those of version 2 in the machine made for them.
"""

import dataclasses
import os

import msgspec
import pytest
import pytest_asyncio

from agent.model import cgroup_layout
from agent.model.cpus import kubelet_cpu_manager
from agent.report.events import drift_events
from domain.cpus import cpulists
from process.runtime import metrics
from tests.planes.host import kubepods

KEY = "scheduling.koordinator.sh/resource-status"
NONE = kubelet_cpu_manager.Told(kubelet_cpu_manager.Configuration("none", topology="None"))
WHOLE = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
SLEEP = "sleep 1000"


@dataclasses.dataclass
class Recorder:
    """Keeps the notes of events."""

    notes: list = dataclasses.field(default_factory=list)

    def event(self, _regarding, _kind, _reason, note, action=""):
        self.notes.append(note)
        return True


@pytest_asyncio.fixture
async def node(tmp_path):
    groups = kubepods.Groups(f"koord-cpusets-{os.getpid()}")
    try:
        node = kubepods.Node(groups, tmp_path)
        # A kubelet that hands out CPUs itself could be anybody who writes a cpuset.
        node.known = msgspec.structs.replace(node.known, kubelet=NONE)
        yield node
        node.uninstall()
    finally:
        await groups.remove()


@pytest.fixture
def cpus():
    """The CPUs of this machine in order; there have to be two, or nobody has one alone."""
    found = sorted(cpulists.parse(kubepods.all_cpus()))
    if len(found) < 2:
        pytest.skip("this machine has one cpu only")
    return found


def bound(node, uid, cpu):
    pod, container = node.pod(uid, "Guaranteed", WHOLE, **{KEY: f'{{"cpuset":"{cpu}"}}'})
    node.groups.limit(container, 100_000)
    return pod, container


async def test_processes_run_where_their_pod_was_allocated_and_others_do_not(node, cpus):
    first, *rest = cpus
    _, alone = bound(node, "alone", first)
    _, shared = node.pod("shared", "Burstable")
    _, batch = node.pod("batch", "BestEffort")
    processes = {group: node.groups.start(group, SLEEP) for group in (alone, shared, batch)}
    before = {group: os.sched_getaffinity(one.pid) for group, one in processes.items()}
    quota = node.groups.text(cgroup_layout.File.CPU_QUOTA, alone)
    node.enforce()
    await node.seconds(2)
    assert os.sched_getaffinity(processes[alone].pid) == {first}
    assert os.sched_getaffinity(processes[shared].pid) == set(rest)
    # Best effort may use the CPUs of a class that is not exclusive.
    assert os.sched_getaffinity(processes[batch].pid) == set(cpus)
    assert node.groups.text(cgroup_layout.File.CPU_QUOTA, alone).split()[0] in ("-1", "max")
    # The allocation moves: the pod that ended gives its CPU back to those who share.
    node.groups.stop(processes.pop(alone))
    await node.remove("alone")
    await node.seconds(2)
    assert os.sched_getaffinity(processes[shared].pid) == set(cpus)
    _, later = bound(node, "later", cpus[-1])
    processes[later] = node.groups.start(later, SLEEP)
    await node.seconds(2)
    assert os.sched_getaffinity(processes[later].pid) == {cpus[-1]}
    assert os.sched_getaffinity(processes[shared].pid) == set(cpus[:-1])
    node.loop.put_back("uninstalled")
    for group in (shared, batch):
        assert os.sched_getaffinity(processes[group].pid) == before[group]
    assert node.groups.text(cgroup_layout.File.CPU_QUOTA, later) == quota


async def test_a_program_that_moves_a_container_is_reported_and_corrected(node, cpus):
    first, second = cpus[:2]
    _, alone = bound(node, "alone", first)
    process = node.groups.start(alone, SLEEP)
    node.enforce()
    await node.seconds(2)
    recorder, lines = Recorder(), []
    drift = drift_events.DriftEvents(recorder, lines.append, metrics.Registry())
    node.groups.write(cgroup_layout.File.CPUSET, alone, str(second))
    assert os.sched_getaffinity(process.pid) == {second}
    begin = node.clock.monotonic()
    for later in (0, drift_events.SECONDS):
        drift.look(node.loop, begin + later)
    assert recorder.notes == [f"container app may use cpus {second}, and was given {first}"]
    assert [one["reason"] for one in lines] == ["cpu drift"]
    assert drift.problem
    await node.until(lambda: os.sched_getaffinity(process.pid) == {first}, 60)
    drift.look(node.loop, begin + 2 * drift_events.SECONDS)
    assert drift.problem is None


async def test_a_cgroup_outside_of_pods_that_is_pinned_is_found(node, cpus):
    first = cpus[0]
    _, alone = bound(node, "alone", first)
    node.groups.start(alone, SLEEP)
    node.enforce()
    await node.seconds(2)
    recorder = Recorder()
    drift = drift_events.DriftEvents(recorder, lambda _line: None, metrics.Registry())
    pinned = node.groups.make(f"{node.groups.system}/database.service")
    node.groups.write(cgroup_layout.File.CPUSET, pinned, str(first))
    for later in (0, drift_events.SECONDS):
        drift.look(node.loop, node.clock.monotonic() + later)
    wanted = f"cgroup {pinned} is pinned to cpus {first}, which this pod has alone"
    assert wanted in recorder.notes
