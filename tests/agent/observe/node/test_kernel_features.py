"""What this process may do on a host is found out without doing it."""

import os
from pathlib import Path

import pytest

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.model import capability_matrix, cgroup_layout, edits
from agent.observe.node import capability_facts, kernel_features

R = edits.Role


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def arranged(request, tmp_path):
    made = cgroup_layout.Layout(
        str(tmp_path / "cgroup"),
        request.param,
        "cgroupfs",
        proc=str(tmp_path / "proc"),
        sys=str(tmp_path / "sys"),
        terway=str(tmp_path / "terway"),
    )
    for name in ("Guaranteed", "Burstable", "BestEffort"):
        group = made.qos_group(name)
        for file in (
            cgroup_layout.File.CPUSET,
            cgroup_layout.File.CPU_SHARES,
            cgroup_layout.File.CPU_QUOTA,
        ):
            put(made.path(file, group), "1\n")
    put(made.path(cgroup_layout.File.KIDLED_PERIOD, ""), "0\n")
    put(made.path(cgroup_layout.File.KIDLED_HIERARCHY, ""), "0\n")
    (tmp_path / "terway").mkdir()
    return made


def put(path, text):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def seal(path):
    """Root may write every file of a plain folder; what lies elsewhere is not followed."""
    Path(path).rename(f"{path}.real")
    Path(path).symlink_to(f"{path}.real")


def row(arranged, name):
    facts = capability_facts.facts(arranged, arranged.proc, arranged.sys)
    return next(one for one in capability_matrix.matrix(facts) if one.strategy == name)


def test_what_can_be_read_and_not_written_does_not_work(arranged):
    assert row(arranged, "cold-pages").verdict is capability_matrix.Verdict.WORKS
    seal(arranged.path(cgroup_layout.File.KIDLED_PERIOD, ""))
    assert row(arranged, "cold-pages").verdict is capability_matrix.Verdict.SUBSTITUTE
    seal(arranged.path(cgroup_layout.File.KIDLED_HIERARCHY, ""))
    found = row(arranged, "cold-pages")
    assert found.verdict is capability_matrix.Verdict.UNAVAILABLE
    assert "kidled-period" in found.how


def test_one_property_of_groups_that_is_sealed(arranged):
    for name in ("Guaranteed", "Burstable", "BestEffort"):
        seal(arranged.path(cgroup_layout.File.CPUSET, arranged.qos_group(name)))
    assert row(arranged, "cpuset").verdict is capability_matrix.Verdict.UNAVAILABLE
    assert row(arranged, "cpu-suppress").verdict is capability_matrix.Verdict.SUBSTITUTE


def test_looking_changes_nothing(arranged, tmp_path):
    def seen():
        return {
            str(path): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in tmp_path.rglob("*")
            if path.is_file()
        }

    before = seen()
    assert kernel_features.sealed(arranged, [arranged.qos_group("Burstable"), ""]) == frozenset()
    assert seen() == before


@pytest.mark.parametrize(
    ("pids", "expected"),
    [
        pytest.param("0\n0\n", False, id="shown as 0"),
        pytest.param("77\n0\n", False, id="some of them"),
        pytest.param("", False, id="left out"),
        pytest.param("77\n78\n", True, id="shown"),
        pytest.param("{me}\n", False, id="only this process"),
    ],
)
def test_whether_processes_of_pods_have_numbers(arranged, monkeypatch, pids, expected):
    monkeypatch.setattr(kernel_features, "names_processes", lambda: False)
    group = f"{arranged.qos_group('Burstable')}/pod1/c1"
    put(arranged.path(cgroup_layout.File.PROCESSES, group), pids.format(me=os.getpid()))
    assert capability_facts.facts(arranged, arranged.proc, arranged.sys).host_pids is expected


@pytest.mark.parametrize(
    ("role", "group", "value", "said"),
    [
        (R.CPU_BURST, "kubepods/burstable", "1000", "cfs_burst_us|cpu.max.burst"),
        (R.MEMORY_WMARK_RATIO, "kubepods/burstable", "95", "memory.wmark_ratio"),
        (R.SCHED_IDLE_SAVER, "", "1", "sched_idle_saver_wmark"),
        (R.RESCTRL_GROUP, "BE", "present", "not mounted"),
    ],
    ids=lambda value: value if isinstance(value, R) else None,
)
def test_a_property_that_the_kernel_lacks_is_told_and_not_dropped(
    arranged, tmp_path, role, group, value, said
):
    put(f"{arranged.folder(cgroup_layout.File.MEMORY_LIMIT, 'kubepods/burstable')}/memory.any", "")
    kept = journal.Journal(tmp_path / "state", "boot")
    kept.load()
    doing = executor.Executor(property_files.Knobs(arranged), kept, writing=True)
    outcome = doing.apply([edits.Edit(role, group, value, "r")], 0)
    ((what, write, reason),) = outcome.records
    assert (what, write.role, write.target) == ("missing", role, value)
    assert any(part in reason for part in said.split("|"))
    assert len(kept) == 0


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(edits.Edit(R.CPU_BURST, "kubepods/gone", "1000", "r"), id="the group left"),
        pytest.param(edits.Edit(R.CPU_BURST, "kubepods/burstable", None, "r"), id="a release"),
        pytest.param(edits.Edit(R.PROCESS_POLICY, "kubepods/gone", "idle", "r"), id="no process"),
    ],
)
def test_what_left_is_not_missing(arranged, tmp_path, edit):
    kept = journal.Journal(tmp_path / "state", "boot")
    kept.load()
    doing = executor.Executor(property_files.Knobs(arranged), kept, writing=True)
    assert doing.apply([edit], 0).records == []
