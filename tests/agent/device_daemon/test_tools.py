"""Tools of vendors as real programs: what they print, and what becomes of those that misbehave."""

import os
import select

import pytest

from agent.device_daemon import tools
from agent.host import files
from tests import patience


def program(folder, text):
    path = folder / "tool"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_what_a_tool_prints(tmp_path):
    path = program(tmp_path, 'echo "$1 $LC_ALL $HOME"')
    assert tools.Tools(path).run("tool", "a b") == "a b C \n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo wrong >&2; exit 3", "tool -q: exit code 3: wrong"),
        ("exec sleep 600", "tool -q has not ended within 0.05 s"),
        ("exec >&- 2>&-; sleep 600", "tool -q has not ended within 0.05 s"),
        ("sleep 600 & exit 0", "tool -q has not ended within 0.05 s"),
        ("while :; do echo yyyyyyyyyyyyyyyy; done", "tool -q prints more than 4096 bytes"),
    ],
    ids=["fails", "hangs", "hangs in silence", "leaves a child behind", "floods"],
)
def test_a_tool_that_misbehaves_is_ended_and_named(tmp_path, text, said):
    path = program(tmp_path, text)
    slow = "exit 3" in text or "echo y" in text
    with pytest.raises(files.ReadingError) as error:
        tools.Tools(path, seconds=60 if slow else 0.05, most=4096).run("tool", "-q")
    assert str(error.value) == said


def test_a_tool_is_ended_with_its_children(tmp_path):
    path = program(tmp_path, f"sleep 600 & echo $! > {tmp_path}/child; exec yes")
    with pytest.raises(files.ReadingError):
        tools.Tools(path, seconds=60, most=4096).run("tool")
    child = int((tmp_path / "child").read_text())
    try:
        waiting = os.pidfd_open(child)
    except ProcessLookupError:
        return
    ended, _, _ = select.select([waiting], [], [], patience.SECONDS)
    os.close(waiting)
    assert ended


def test_a_tool_that_is_missing_is_named(tmp_path):
    with pytest.raises(files.ReadingError, match="tool: No such file or directory"):
        tools.Tools(str(tmp_path)).run("tool")


def test_with_a_root_tools_run_inside_it(tmp_path):
    if os.getuid() != 0:
        pytest.skip("chroot takes root")
    with pytest.raises(files.ReadingError, match="exit code 127"):
        tools.Tools("/usr/bin:/bin", root=tmp_path).run("tool")
