"""A container with thousands of processes: all of them are listed, reached, put back and ended."""

import os
import resource
import signal

import msgspec
import pytest
import pytest_asyncio

from agent.apply import executor, journal
from agent.apply.evictions import killer
from agent.apply.properties import property_files
from agent.apply.tasks import kernel as kernels
from agent.apply.tasks import members
from agent.decide.strategies import memory_evict
from agent.host import files
from agent.model import cgroup_layout, edits, state
from api.kubernetes import core
from tests.planes import raw
from tests.planes.host import kubepods

R = edits.Role
# An emulated machine forks slowly and has little memory; a page holds some 580 there as well.
MANY = 5000 if kubepods.version() == 1 else 1500
RULES = killer.Rules(95, memory_evict.FOR_USE)
WAITING = "exec 3<&0; i=1; while [ $i -lt {} ]; do read x <&3 & i=$((i+1)); done; wait"


@pytest_asyncio.fixture
async def groups():
    made = kubepods.Groups(f"koord-many-{os.getpid()}", "cgroupfs")
    try:
        yield made
    finally:
        for name in ("crowd", "other"):
            group = f"{made.layout.qos_group('BestEffort')}/podx/{name}"
            if os.access(made.layout.folder(cgroup_layout.File.PROCESSES, group), os.F_OK):
                for pid in members.Members(made.layout, kernels.Host()).pids(group):
                    os.kill(pid, signal.SIGKILL)
        await made.remove()


async def crowd(groups, many, name="crowd"):
    group = groups.make(f"{groups.layout.qos_group('BestEffort')}/podx/{name}")
    inside = members.Members(groups.layout, kernels.Host())
    groups.start(group, WAITING.format(many))

    async def there():
        return len(inside.pids(group)) == many

    await raw.eventually(there, 60)
    return group, inside


@pytest.fixture
def few_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_files")
async def test_all_of_thousands_are_reached_and_put_back(groups, tmp_path):
    group, inside = await crowd(groups, MANY)
    pids = inside.pids(group)
    assert len(set(pids)) == len(pids) == MANY
    assert len(files.read(groups.layout.path(cgroup_layout.File.PROCESSES, group), 1 << 20)) > 4096

    def policies():
        return {os.sched_getscheduler(pid) for pid in pids}

    def scores():
        return {files.read(f"/proc/{pid}/oom_score_adj").strip() for pid in pids}

    before = scores()
    kept = journal.Journal(tmp_path / "state", "boot")
    kept.load()
    acting = executor.Executor(property_files.Knobs(groups.layout), kept, writing=True)
    wanted = [
        edits.Edit(R.PROCESS_POLICY, group, "idle", "r"),
        edits.Edit(R.PROCESS_OOM_SCORE, group, "900", "r"),
    ]
    assert acting.apply(wanted, 0).failures == 0
    assert policies() == {os.SCHED_IDLE}
    assert scores() == {b"900"}
    assert acting.apply(wanted, 1).records == []
    acting.put_back("stop")
    assert policies() == {os.SCHED_OTHER}
    assert scores() == before
    assert acting.given_up == {}


async def test_a_container_is_killed_with_all_of_its_processes_and_no_other(groups, placed_in):
    group, inside = await crowd(groups, 200)
    other, _ = await crowd(groups, 2, "other")
    ending = killer.Killer(lambda: placed_in(group), lambda: groups.layout, RULES)
    wish = edits.Eviction("default", "a", "uid-a", "r", memory_evict.BE_MEMORY_EVICT)
    assert ending.may(wish)
    assert ending.kill(wish) == "killed crowd"

    async def gone():
        return inside.pids(group) == []

    await raw.eventually(gone, 10)
    assert len(inside.pids(other)) == 2


@pytest.fixture
def placed_in():
    """A picture of a node short of memory with one pod whose container is that group."""

    def made(group):
        node = msgspec.convert({"status": {"capacity": {"memory": "100"}}}, core.Node)
        pod = msgspec.convert({"metadata": {"uid": "uid-a"}}, core.Pod)
        one = state.PodState(pod, "BestEffort", containers=(state.ContainerState("c", group),))
        return state.NodeState(at=0, node=node, pods=(one,), usage=state.Usage(memory=96))

    return made
