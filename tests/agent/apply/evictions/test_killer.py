"""Containers are ended one process after another where the kernel has no cgroup.kill."""

import msgspec
import pytest

from agent.apply.evictions import killer
from agent.decide.strategies import memory_evict
from agent.model import cgroup_layout, edits, state
from api.kubernetes import core

GROUP = "kubepods/besteffort/poda/c"
WISH = edits.Eviction("default", "a", "a", "r", memory_evict.BE_MEMORY_EVICT)


class Kernel:
    """Ends processes, after each of which the group lists what a test says."""

    def __init__(self, file, then):
        self.file, self.then, self.killed = file, then, []

    def kill(self, _group, pid):
        self.killed.append(pid)
        self.file.write_text(self.then)


@pytest.fixture
def ending(tmp_path):
    arranged = cgroup_layout.Layout(str(tmp_path), 2, "cgroupfs")
    file = tmp_path / GROUP / "cgroup.procs"
    file.parent.mkdir(parents=True)
    file.write_text("7\n")
    node = msgspec.convert({"status": {"capacity": {"memory": "100"}}}, core.Node)
    pod = msgspec.convert({"metadata": {"uid": "a"}}, core.Pod)
    one = state.PodState(pod, "BestEffort", containers=(state.ContainerState("c", GROUP),))
    picture = state.NodeState(at=0, node=node, pods=(one,), usage=state.Usage(memory=96))
    kernel = Kernel(file, "")
    made = killer.Killer(
        lambda: picture,
        lambda: arranged,
        killer.Rules(95, memory_evict.FOR_USE),
        lambda: kernel,
    )
    made.kernel = kernel
    return made


def test_the_processes_of_a_container_are_ended(ending):
    assert ending.may(WISH)
    assert ending.kill(WISH) == "killed c"
    assert ending.kernel.killed == [7]


@pytest.mark.parametrize("then", ["0\n", "seven\n"])
def test_processes_that_cannot_be_named_any_more_are_a_failure_that_is_told(ending, then):
    ending.kernel.then = then
    with pytest.raises(OSError, match=r"cgroup\.procs"):
        ending.kill(WISH)
