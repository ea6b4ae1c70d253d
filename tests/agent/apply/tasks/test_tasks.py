"""Processes by their numbers: only those that have one, and only while they are who is meant."""

import errno
import os
import signal
import subprocess

import pytest

from agent.apply import executor, journal, processes
from agent.apply.properties import property_files
from agent.apply.tasks import kernel as kernels
from agent.host import files
from agent.model import cgroup_layout, edits

R = edits.Role
OF_PROCESSES = {
    R.PROCESS_POLICY: "idle",
    R.PROCESS_COOKIE: "team",
    R.PROCESS_OOM_SCORE: "900",
    R.PROCESS_RESCTRL: "BE",
}


@pytest.fixture
def arranged(tmp_path):
    made = cgroup_layout.Layout(
        str(tmp_path / "cgroup"),
        2,
        "cgroupfs",
        proc=str(tmp_path / "proc"),
        sys=str(tmp_path / "sys"),
    )
    for name in ("g", "h"):
        (tmp_path / "cgroup" / name).mkdir(parents=True)
    (tmp_path / "sys/fs/resctrl/BE").mkdir(parents=True)
    for name in ("tasks", "schemata", "BE/tasks"):
        (tmp_path / "sys/fs/resctrl" / name).write_text("")
    return made


def have(arranged, group, *pids):
    path = arranged.path(cgroup_layout.File.PROCESSES, group)
    with open(path, "w") as file:  # noqa: PTH123 - the layout speaks in texts
        file.write("".join(f"{pid}\n" for pid in pids))


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "60"])
    yield process.pid
    process.kill()
    process.wait()


def acting(arranged, tmp_path):
    kept = journal.Journal(tmp_path / "state", "boot")
    kept.load()
    return executor.Executor(property_files.Knobs(arranged, kernels.Host()), kept, writing=True)


@pytest.mark.parametrize("role", OF_PROCESSES)
@pytest.mark.parametrize("pids", [(0,), (0, 0, 0), "sleeper and 0"], ids=["one", "many", "some"])
def test_processes_of_another_namespace_are_left_alone_and_named(
    arranged, tmp_path, sleeper, role, pids
):
    """Number 0 means this very process to most calls of the kernel."""
    have(arranged, "g", *((sleeper, 0) if isinstance(pids, str) else pids))
    before = os.sched_getscheduler(0)
    try:
        outcome = acting(arranged, tmp_path).apply(
            [edits.Edit(role, "g", OF_PROCESSES[role], "r")], 0
        )
        assert os.sched_getscheduler(0) == before
        assert os.sched_getscheduler(sleeper) == before
    finally:
        os.sched_setscheduler(0, before, os.sched_param(0))
    ((what, _, reason),) = outcome.records
    assert what == "failed"
    assert "hostPID" in reason


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda host: host.policy(0), id="policy"),
        pytest.param(lambda host: host.set_policy(0, os.SCHED_IDLE), id="set policy"),
        pytest.param(lambda host: host.cookie(0), id="cookie"),
        pytest.param(lambda host: host.new_cookie(0), id="new cookie"),
        pytest.param(lambda host: host.share_cookie(0, 0), id="share cookie"),
        pytest.param(lambda host: host.while_in("g", 0, lambda: None), id="member"),
        pytest.param(lambda host: host.set_policy(-1, os.SCHED_IDLE), id="negative"),
    ],
)
def test_no_call_takes_number_0(call):
    before = os.sched_getscheduler(0)
    with pytest.raises(OSError, match="hostPID") as caught:
        call(kernels.Host())
    assert caught.value.errno == errno.EINVAL
    assert os.sched_getscheduler(0) == before


def test_a_number_that_another_process_has_by_now_is_not_acted_on(arranged, tmp_path, sleeper):
    """The list still says that the process is in the group, and it is in another one."""
    have(arranged, "g", sleeper)
    (tmp_path / "proc" / str(sleeper) / "task" / str(sleeper)).mkdir(parents=True)
    for role, value in OF_PROCESSES.items():
        place = processes.place(arranged, role, kernels.Host())
        if role is not R.PROCESS_COOKIE:
            place.write("g", value)
    assert os.sched_getscheduler(sleeper) == os.SCHED_OTHER
    assert not (tmp_path / "proc" / str(sleeper) / "oom_score_adj").exists()
    assert (tmp_path / "sys/fs/resctrl/BE/tasks").read_text() == ""


def test_a_process_is_held_while_something_is_done_to_it(sleeper):
    host, done = kernels.Host(), []
    own = [line.split(":", 2) for line in files.read("/proc/self/cgroup").decode().splitlines()]
    group = {name: path for _, names, path in own for name in names.split(",")}["cpu"].strip("/")
    host.while_in(group, sleeper, lambda: done.append(1))
    assert done == [1]
    os.kill(sleeper, signal.SIGKILL)
    os.waitid(os.P_PID, sleeper, os.WEXITED | os.WNOWAIT)
    # Ended and not yet reaped, it has no group of its own any more on version 2; reaped, nothing.
    gone = subprocess.Popen(["true"])
    gone.wait()
    with pytest.raises(ProcessLookupError):
        host.while_in(group, gone.pid, lambda: done.append(2))
    assert done == [1]


@pytest.mark.parametrize(
    ("listed", "namespaced", "expected"),
    [
        pytest.param("0::/kubepods/pod1/c1\n", False, True, id="v2"),
        pytest.param("0::/../../kubepods/pod1/c1\n", True, True, id="in a namespace of cgroups"),
        pytest.param("0::/../../pod1/c1\n", True, True, id="with a part in common"),
        pytest.param("9:cpu,cpuacct:/kubepods/pod1/c1\n0::/\n", False, True, id="v1"),
        pytest.param("9:cpu:/x\n8:memory:/kubepods/pod1/c1\n", False, False, id="v1, elsewhere"),
        pytest.param("9:cpu:/kubepods/pod1/c2\n0::/\n", True, False, id="hybrid"),
        pytest.param("0::/\n", True, True, id="of the namespace itself: nobody can tell"),
        pytest.param("0::/..\n", True, True, id="above the namespace: nobody can tell"),
        pytest.param("0::/\n", False, False, id="in the root"),
        pytest.param("0::/kubepods/pod1/c2\n", False, False, id="another container"),
        pytest.param("0::/kubepods/pod1/c1/inner\n", False, False, id="a group below"),
        pytest.param("0::/kubepods/pod1/c1 (deleted)\n", False, False, id="removed"),
        pytest.param("", True, False, id="nothing"),
        pytest.param("nonsense\n", True, False, id="nonsense"),
    ],
)
def test_membership(listed, namespaced, expected):
    found = kernels.is_in("kubepods/pod1/c1", listed.encode(), namespaced=namespaced)
    assert found is expected


class Free:
    """A kernel that lets everything be done."""

    def while_in(self, _group, _pid, act):
        act()


def test_who_is_in_which_resctrl_group_is_read_once_per_round(arranged, tmp_path, monkeypatch):
    groups = [f"c{at}" for at in range(20)]
    for at, group in enumerate(groups):
        (tmp_path / "cgroup" / group).mkdir()
        have(arranged, group, at + 1)
        (tmp_path / "proc" / f"{at + 1}" / "task" / f"{at + 1}").mkdir(parents=True)
    read, plain = [], files.read

    def counted(path, limit=files.LIMIT):
        read.append(path)
        return plain(path, limit)

    monkeypatch.setattr(files, "read", counted)
    handles, role = property_files.Knobs(arranged, Free()), R.PROCESS_RESCTRL
    for turn in range(2):
        handles.fresh()
        read.clear()
        for group in groups:
            assert handles.read(role, group) == ("BE" if turn else "")
            handles.write(role, group, "BE")
            assert handles.read(role, group) == "BE"
        assert sum(path.endswith("/BE/tasks") for path in read) == 1
        (tmp_path / "sys/fs/resctrl/BE/tasks").write_text("\n".join(map(str, range(1, 21))))
