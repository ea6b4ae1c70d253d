"""One development run per folder, and nothing of anybody else is touched."""

import os
import subprocess

import pytest

from cli.dev import run_folder


def left_behind(path, pid):
    """Make what a run leaves that was killed."""
    path.mkdir()
    (path / run_folder.PID).write_text(f"{pid}\n")
    (path / run_folder.LOG).write_text("old\n")
    (path / "hosts").mkdir()


def dead():
    """A process id that nobody has any more."""
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_a_held_folder_is_private_and_gone_afterwards(tmp_path):
    path = tmp_path / "deep" / "state"
    with run_folder.held(path):
        assert path.stat().st_mode & 0o077 == 0
        assert int((path / run_folder.PID).read_text()) == os.getpid()
        (path / "more").write_text("x")
    assert not path.exists()


def test_it_is_gone_after_a_failure_as_well(tmp_path):
    with pytest.raises(KeyError), run_folder.held(tmp_path / "state"):
        raise KeyError
    assert not (tmp_path / "state").exists()


def test_what_a_killed_run_left_is_cleared(tmp_path):
    path = tmp_path / "state"
    left_behind(path, dead())
    with run_folder.held(path):
        assert [entry.name for entry in path.iterdir()] == [run_folder.PID]


def test_an_empty_folder_is_taken(tmp_path):
    with run_folder.held(tmp_path / "state"):
        pass
    (tmp_path / "state").mkdir()
    with run_folder.held(tmp_path / "state"):
        pass


def test_a_folder_of_a_living_run_is_refused(tmp_path):
    path = tmp_path / "state"
    message = f"process {os.getpid()} already runs"
    with run_folder.held(path):
        (path / run_folder.LOG).write_text("new\n")
        with pytest.raises(run_folder.FolderError, match=message), run_folder.held(path):
            pass
        assert (path / run_folder.LOG).exists()


def test_the_number_of_a_killed_run_may_belong_to_somebody_else(tmp_path):
    path = tmp_path / "state"
    left_behind(path, os.getpid())
    with run_folder.held(path):
        assert not (path / run_folder.LOG).exists()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"thesis.txt": "x"}, id="other files"),
        pytest.param({"thesis.txt": "x", run_folder.PID: "no number"}, id="a file of our name"),
    ],
)
def test_a_folder_of_somebody_else_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "home"
    path.mkdir()
    for name, text in content.items():
        (path / name).write_text(text)
    with pytest.raises(run_folder.FolderError, match=r"holds something else.*--state"):
        run_folder.held(path).__enter__()
    assert {entry.name for entry in path.iterdir()} == set(content)


def test_a_file_in_its_place_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(run_folder.FolderError, match="--state"):
        run_folder.held(path).__enter__()
    assert path.read_text() == "x"


def test_a_place_where_nothing_can_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(run_folder.FolderError, match=r"cannot be made .*--state"):
        run_folder.held(tmp_path / "file" / "below").__enter__()


def test_the_tail_of_the_log_is_short(tmp_path):
    (tmp_path / run_folder.LOG).write_text("".join(f"{n}\n" for n in range(50)))
    assert run_folder.tail(tmp_path).splitlines()[-1] == "49"
    assert len(run_folder.tail(tmp_path).splitlines()) == 12
    assert run_folder.tail(tmp_path / "missing") == ""
