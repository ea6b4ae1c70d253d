"""Properties that are not one whole file, and those of processes."""

import contextlib
import errno
import os
import subprocess

import pytest

from agent.apply import executor, journal, processes
from agent.apply.properties import partial_properties, property_files
from agent.apply.tasks import kernel as kernels
from agent.host import files
from agent.model import cgroup_layout, edits

R = edits.Role


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def arranged(request, tmp_path):
    made = cgroup_layout.Layout(
        str(tmp_path / "cgroup"),
        request.param,
        "cgroupfs",
        proc=str(tmp_path / "proc"),
        sys=str(tmp_path / "sys"),
    )
    for file in (
        cgroup_layout.File.IO_READ_BPS,
        cgroup_layout.File.PROCESSES,
        cgroup_layout.File.CPU_IDLE,
    ):
        os.makedirs(made.folder(file, "g"), exist_ok=True)  # noqa: PTH103 - a text of a path
    os.makedirs(tmp_path / "sys/fs/resctrl/mon_groups")  # noqa: PTH103
    return made


def put(path, text):
    with open(path, "w") as file:  # noqa: PTH123 - the layout speaks in texts
        file.write(text)


def acting(arranged, tmp_path, kernel=None):
    kept = journal.Journal(tmp_path / "state", "boot")
    kept.load()
    return executor.Executor(property_files.Knobs(arranged, kernel), kept, writing=True)


@pytest.fixture
def kernel_lines(monkeypatch):
    """Let writes to device files merge lines, which plain files cannot."""
    plain = files.write

    def merge(path, text):
        if not path.endswith(("read_bps_device", "io.max")):
            plain(path, text)
            return
        with open(path) as file:  # noqa: PTH123
            now = dict(line.split(" ", 1) for line in file.read().splitlines())
        device, value = text.split(" ", 1)
        if path.endswith("io.max"):
            fields = dict(
                word.split("=")
                for word in now.get(device, "rbps=max wbps=max riops=max wiops=max").split()
            )
            fields.update([value.split("=")])
            value = " ".join(f"{name}={amount}" for name, amount in fields.items())
            empty = set(fields.values()) == {"max"}
        else:
            empty = value == "0"
        now[device] = value
        if empty:
            del now[device]
        put(path, "".join(f"{name} {line}\n" for name, line in now.items()))

    monkeypatch.setattr(files, "write", merge)


def io_file(arranged):
    return arranged.path(cgroup_layout.File.IO_READ_BPS, "g")


def limits(arranged, text):
    """Lines of read limits as the file of this version shows them."""
    if arranged.version == 1:
        return text
    lines = (line.split() for line in text.splitlines())
    return "".join(f"{n} rbps={v} wbps=max riops=max wiops=max\n" for n, v in lines)


@pytest.mark.usefixtures("kernel_lines")
def test_lines_of_other_devices_stay(arranged, tmp_path):
    put(io_file(arranged), limits(arranged, "8:0 500\n8:16 600\n"))
    doing = acting(arranged, tmp_path)
    wanted = [edits.Edit(R.IO_READ_BPS, "g", "8:0 1000\n8:32 70", "r")]
    doing.apply(wanted, 0)
    place = partial_properties.place(arranged, R.IO_READ_BPS)
    assert place.read("g") == "8:0 1000\n8:16 600\n8:32 70"
    assert doing.apply(wanted, 1).records == []
    # Somebody else limits one more device; only what is ours is taken back.
    place.write("g", "8:0 1000\n8:16 650\n8:32 70")
    acting(arranged, tmp_path).put_back("undo")
    assert place.read("g") == "8:0 500\n8:16 650"


@pytest.mark.usefixtures("kernel_lines")
def test_a_limit_that_is_taken_away_comes_back(arranged, tmp_path):
    put(io_file(arranged), limits(arranged, "8:0 500\n"))
    doing, place = acting(arranged, tmp_path), partial_properties.place(arranged, R.IO_READ_BPS)
    doing.apply([edits.Edit(R.IO_READ_BPS, "g", "8:0 0", "r")], 0)
    assert place.read("g") == ""
    doing.put_back("stop")
    assert place.read("g") == "8:0 500"


def test_an_empty_list_that_the_kernel_refuses_becomes_what_it_stands_for(
    arranged, tmp_path, monkeypatch
):
    for group, cpus in (("g", "0"), ("g/c", "0")):
        os.makedirs(arranged.folder(cgroup_layout.File.CPUSET, group), exist_ok=True)  # noqa: PTH103
        put(arranged.path(cgroup_layout.File.CPUSET, group), cpus)
    put(arranged.path(cgroup_layout.File.EFFECTIVE_CPUSET, "g"), "0-3\n")
    plain = files.write

    def refuse(path, text):
        if not text.strip():
            raise OSError(errno.ENOSPC, "there are processes inside")
        plain(path, text)

    monkeypatch.setattr(files, "write", refuse)
    place = partial_properties.place(arranged, R.CPUSET)
    place.write("g/c", "")
    assert place.read("g/c") == "0-3"


def test_features_are_switched_by_name(arranged, tmp_path):
    path = arranged.path(cgroup_layout.File.SCHED_FEATURES, "")
    os.makedirs(os.path.dirname(path))  # noqa: PTH103,PTH120
    put(path, "GENTLE NO_CORE_SCHED\n")
    place = partial_properties.place(arranged, R.SCHED_FEATURE)
    assert (place.read("GENTLE"), place.read("CORE_SCHED")) == ("1", "0")
    with pytest.raises(files.VanishedError, match="no feature 'OTHER'"):
        place.read("OTHER")
    place.write("CORE_SCHED", "1")
    with open(path) as file:  # noqa: PTH123
        assert file.read() == "CORE_SCHED\n"


def test_a_resctrl_group_is_made_and_removed(arranged, tmp_path):
    doing = acting(arranged, tmp_path)
    wanted = [edits.Edit(R.RESCTRL_GROUP, "BE", "present", "r")]
    ((what, _, reason),) = doing.apply(wanted, 0).records
    assert (what, reason) == ("missing", f"{tmp_path / 'sys/fs/resctrl'} is not mounted")
    put(tmp_path / "sys/fs/resctrl/schemata", "    L3:0=fff;1=fff\nMB:0=100;1=100\n")
    doing.apply(wanted, 1)
    assert (tmp_path / "sys/fs/resctrl/BE").is_dir()
    doing.put_back("stop")
    assert not (tmp_path / "sys/fs/resctrl/BE").exists()
    for name in ("", "../x", ".hidden"):
        with pytest.raises(OSError, match="Invalid argument"):
            partial_properties.place(arranged, R.RESCTRL_GROUP).write(name, "present")


def test_one_line_of_a_schemata(arranged, tmp_path):
    folder = tmp_path / "sys/fs/resctrl/BE"
    folder.mkdir()
    put(folder / "schemata", "    L3:0=fff;1=fff\n    MB:0=100;1=100\n")
    cache = partial_properties.place(arranged, R.RESCTRL_L3)
    assert cache.read("BE") == "L3:0=fff;1=fff"
    assert partial_properties.place(arranged, R.RESCTRL_MB).read("BE") == "MB:0=100;1=100"
    cache.write("BE", "L3:0=f;1=f")
    assert (folder / "schemata").read_text() == "L3:0=f;1=f\n"
    put(folder / "schemata", "MB:0=100\n")
    with pytest.raises(files.VanishedError, match="no line for L3"):
        cache.read("BE")


class Sandbox:
    """A kernel with processes of its own."""

    def __init__(self):
        self.policies, self.cookies, self.next = {}, {}, 100
        self.refused = False

    def while_in(self, group, pid, act):
        self.policy(pid)
        act()

    def policy(self, pid):
        if pid not in self.policies:
            raise ProcessLookupError(errno.ESRCH, "gone")
        return self.policies[pid]

    def set_policy(self, pid, policy):
        if self.refused:
            raise PermissionError(errno.EPERM, "refused")
        self.policy(pid)
        self.policies[pid] = policy

    def cookie(self, pid):
        self.policy(pid)
        return self.cookies.get(pid, 0)

    def new_cookie(self, pid):
        self.policy(pid)
        self.next += 1
        self.cookies[pid] = self.next

    def share_cookie(self, source, target):
        self.policy(target)
        self.cookies[target] = self.cookie(source) if source else 0


@pytest.fixture
def sandbox(arranged):
    kernel = Sandbox()
    members(arranged, kernel, "g", 1, 2, 3)
    return kernel


def members(arranged, kernel, group, *pids):
    os.makedirs(arranged.folder(cgroup_layout.File.PROCESSES, group), exist_ok=True)  # noqa: PTH103
    put(arranged.path(cgroup_layout.File.PROCESSES, group), "".join(f"{pid}\n" for pid in pids))
    for pid in pids:
        kernel.policies.setdefault(pid, os.SCHED_OTHER)


def test_processes_run_when_nobody_else_wants_to_and_are_let_go(arranged, sandbox, tmp_path):
    sandbox.policies[3] = os.SCHED_FIFO
    doing = acting(arranged, tmp_path, sandbox)
    wanted = [edits.Edit(R.PROCESS_POLICY, "g", "idle", "r")]
    doing.apply(wanted, 0)
    assert sandbox.policies == {1: os.SCHED_IDLE, 2: os.SCHED_IDLE, 3: os.SCHED_FIFO}
    # A process is born with another policy, one dies, and nobody calls that a quarrel.
    members(arranged, sandbox, "g", 1, 2, 4)
    del sandbox.policies[2]
    for second in range(1, 6):
        sandbox.policies[4] = os.SCHED_OTHER
        doing.apply(wanted, second)
        assert sandbox.policies[4] == os.SCHED_IDLE
    assert doing.given_up == {}
    acting(arranged, tmp_path, sandbox).put_back("undo")
    assert sandbox.policies == {1: os.SCHED_OTHER, 3: os.SCHED_FIFO, 4: os.SCHED_OTHER}


def test_every_thread_of_a_process_has_the_policy(arranged, sandbox, tmp_path):
    for thread in (1, 31, 32):
        (tmp_path / f"proc/1/task/{thread}").mkdir(parents=True)
        sandbox.policies[thread] = os.SCHED_OTHER
    doing = acting(arranged, tmp_path, sandbox)
    doing.apply([edits.Edit(R.PROCESS_POLICY, "g", "idle", "r")], 0)
    assert {sandbox.policies[thread] for thread in (1, 31, 32)} == {os.SCHED_IDLE}
    doing.put_back("stop")
    assert {sandbox.policies[thread] for thread in (1, 31, 32)} == {os.SCHED_OTHER}


def test_a_group_that_was_mixed_before_is_left_and_said(arranged, sandbox, tmp_path):
    sandbox.policies[1] = os.SCHED_IDLE
    doing = acting(arranged, tmp_path, sandbox)
    doing.apply([edits.Edit(R.PROCESS_POLICY, "g", "idle", "r")], 0)
    outcome = doing.put_back("stop")
    assert [(what, reason) for what, _, reason in outcome.records] == [
        ("left", "was not one value before; it stays")
    ]


def test_a_refusal_of_the_kernel_is_reported(arranged, sandbox, tmp_path):
    sandbox.refused = True
    outcome = acting(arranged, tmp_path, sandbox).apply(
        [edits.Edit(R.PROCESS_POLICY, "g", "idle", "r")], 0
    )
    assert outcome.failures == 1
    assert "EPERM" in outcome.records[0][2]


def test_groups_of_one_name_share_a_cookie_while_one_process_lives(arranged, sandbox, tmp_path):
    members(arranged, sandbox, "h", 7)
    members(arranged, sandbox, "other", 8)
    doing = acting(arranged, tmp_path, sandbox)
    wanted = [
        edits.Edit(R.PROCESS_COOKIE, "g", "team", "r"),
        edits.Edit(R.PROCESS_COOKIE, "h", "team", "r"),
        edits.Edit(R.PROCESS_COOKIE, "other", "alone", "r"),
    ]
    doing.apply(wanted, 0)
    assert len({sandbox.cookies[pid] for pid in (1, 2, 3, 7)}) == 1
    assert sandbox.cookies[8] not in (0, sandbox.cookies[1])
    assert doing.apply(wanted, 1).records == []
    # Everybody who had the cookie dies; those born since get one of their own.
    for pid in (1, 2, 3, 7):
        del sandbox.policies[pid], sandbox.cookies[pid]
    members(arranged, sandbox, "g", 11)
    members(arranged, sandbox, "h", 12)
    doing.apply(wanted, 30)
    assert sandbox.cookies[11] == sandbox.cookies[12] != 0
    acting(arranged, tmp_path, sandbox).put_back("undo")
    assert {sandbox.cookies.get(pid, 0) for pid in (8, 11, 12)} == {0}


def test_scores_of_all_processes(arranged, sandbox, tmp_path):
    for pid, score in ((1, 5), (2, 5), (3, 5)):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        put(tmp_path / f"proc/{pid}/oom_score_adj", f"{score}\n")
    doing = acting(arranged, tmp_path, sandbox)
    doing.apply([edits.Edit(R.PROCESS_OOM_SCORE, "g", "900", "r")], 0)
    place = processes.place(arranged, R.PROCESS_OOM_SCORE, sandbox)
    assert place.read("g") == "900"
    put(tmp_path / "proc/2/oom_score_adj", "3\n")
    assert place.read("g") == processes.MIXED
    doing.put_back("stop")
    assert place.read("g") == "5"


def test_threads_move_to_a_resctrl_group_and_back(arranged, sandbox, tmp_path):
    root = tmp_path / "sys/fs/resctrl"
    (root / "BE").mkdir()
    put(root / "tasks", "1\n2\n3\n31\n")
    put(root / "BE/tasks", "")
    for pid, threads in ((1, [1]), (2, [2]), (3, [3, 31])):
        for thread in threads:
            (tmp_path / f"proc/{pid}/task/{thread}").mkdir(parents=True)
    place = processes.place(arranged, R.PROCESS_RESCTRL, sandbox)
    assert place.read("g") == ""
    place.write("g", "BE")
    # A plain file keeps the last write only; the kernel takes one thread per write.
    assert (root / "BE/tasks").read_text() == "31\n"
    put(root / "BE/tasks", "1\n2\n3\n31\n")
    place = processes.place(arranged, R.PROCESS_RESCTRL, sandbox)
    assert place.read("g") == "BE"
    put(root / "BE/tasks", "1\n2\n")
    place = processes.place(arranged, R.PROCESS_RESCTRL, sandbox)
    assert place.read("g") == processes.MIXED


def test_the_real_kernel_knows_policies(tmp_path):
    sleeper = subprocess.Popen(["sleep", "30"])
    try:
        kernel = kernels.Host()
        assert kernel.policy(sleeper.pid) == os.SCHED_OTHER
        kernel.set_policy(sleeper.pid, os.SCHED_IDLE)
        assert kernel.policy(sleeper.pid) == os.SCHED_IDLE
        # Not every kernel has core scheduling; one that has it gives nobody a cookie by itself.
        with contextlib.suppress(OSError):
            assert kernel.cookie(sleeper.pid) == 0
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_memory_limit_is_raised_beyond_that_of_memory_with_swap(tmp_path, monkeypatch):
    """The kernel refuses a limit above that of memory with swap, which runtimes set to the same."""
    group = tmp_path / "memory" / "g"
    group.mkdir(parents=True)
    limit, both = group / "memory.limit_in_bytes", group / "memory.memsw.limit_in_bytes"
    limit.write_text("100\n")
    both.write_text("100\n")
    write = files.write

    def kernel(path, text):
        if path == str(limit) and int(text) > int(both.read_text()):
            raise OSError(errno.EINVAL, "Invalid argument")
        write(path, text)

    monkeypatch.setattr(files, "write", kernel)
    layout = cgroup_layout.Layout(str(tmp_path), 1, "cgroupfs")
    knobs = property_files.Knobs(layout)
    knobs.write(edits.Role.MEMORY_LIMIT, "g", "50")
    assert both.read_text() == "100\n"
    knobs.write(edits.Role.MEMORY_LIMIT, "g", "300")
    assert (limit.read_text(), both.read_text()) == ("300", "300")
    both.unlink()
    monkeypatch.setattr(files, "write", refuse)
    with pytest.raises(OSError, match="refused"):
        knobs.write(edits.Role.MEMORY_LIMIT, "g", "400")


def refuse(_path, _text):
    raise OSError(errno.EINVAL, "refused")
