"""`koord agent undo` puts a host back without an agent."""

import pytest

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.assembly import undo
from agent.model import edits
from agent.observe.node import boot
from cli import main


@pytest.fixture
def changed(any_host, tmp_path):
    """A host that an agent changed and left behind when it was killed."""
    any_host.add("be", "BestEffort", 4000)
    any_host.step()
    before = any_host.snapshot()
    group = any_host.observer.layout.qos_group("BestEffort")
    kept = journal.Journal(tmp_path / "state", boot.boot_id(any_host.observer.roots.proc))
    acting = executor.Executor(property_files.Knobs(any_host.observer.layout), kept, writing=True)
    acting.apply([edits.Edit(edits.Role.CPUSET, group, "0-1", "busy")], 0)
    assert any_host.snapshot() != before
    return any_host, before, group


def run(host, tmp_path, *more):
    roots = host.observer.roots
    folders = [f"--state={tmp_path / 'state'}", f"--cgroup={roots.cgroup}"]
    return undo.main([*folders, f"--proc={roots.proc}", f"--sys={roots.sys}", *more])


def meaning(snapshot):
    return {path: data.strip() for path, data in snapshot.items()}


def test_everything_is_put_back_and_said(changed, tmp_path, capsys):
    host, before, group = changed
    assert run(host, tmp_path, "--dry-run") == undo.OK
    assert f"would put back cpuset of {group}" in capsys.readouterr().out
    assert host.snapshot() != before
    assert run(host, tmp_path) == undo.OK
    assert f"put back cpuset of {group}" in capsys.readouterr().out
    assert meaning(host.snapshot()) == meaning(before)
    assert run(host, tmp_path) == undo.OK
    assert capsys.readouterr().out == "nothing to put back\n"


def test_what_somebody_else_wrote_is_left_and_said(changed, tmp_path, capsys):
    host, _, group = changed
    host.batch_file("cpuset.cpus").write_text("0-4\n")
    assert run(host, tmp_path) == undo.OK
    assert f"left cpuset of {group}" in capsys.readouterr().out
    assert host.batch_file("cpuset.cpus").read_text() == "0-4\n"


def test_not_while_an_agent_runs(changed, tmp_path, capsys):
    host, _, _ = changed
    running = journal.Journal(tmp_path / "state", "boot")
    running.hold()
    assert run(host, tmp_path) == undo.REFUSED
    assert "in use by an agent on this host; stop it first" in capsys.readouterr().out
    running.close()
    assert run(host, tmp_path) == undo.OK


def test_a_damaged_journal_is_named(changed, tmp_path, capsys):
    host, _, _ = changed
    (tmp_path / "state" / journal.NAME).write_text("{}\n")
    assert run(host, tmp_path) == undo.REFUSED
    assert "line 1 is damaged; look at it" in capsys.readouterr().out.replace("(", "").replace(
        ")", ""
    )


def test_what_cannot_be_put_back_is_a_failure(changed, tmp_path, capsys, monkeypatch):
    host, _, _ = changed

    def refuse(*_):
        raise PermissionError(13, "refused")

    with monkeypatch.context() as patched:
        patched.setattr(property_files.Knobs, "write", refuse)
        assert run(host, tmp_path) == undo.FAILED
    assert "could not be put back; run it again" in capsys.readouterr().out
    assert run(host, tmp_path) == undo.OK


def test_a_host_without_pods(tmp_path, capsys):
    assert main.main(["agent", "undo", f"--cgroup={tmp_path}"]) == undo.OK
    assert "has no group of pods" in capsys.readouterr().out
