"""What is started ends with whoever started it, however that ends."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

from tests import patience

STARTER = """
    import subprocess, sys
    from simulator.processes import children

    sleeper = subprocess.Popen(["sleep", "600"], preexec_fn=children.die_with_parent)
    print(sleeper.pid, flush=True)
    sys.stdin.read()
"""
ROOT = pathlib.Path(__file__).parents[3]


def _runs(pid: int) -> bool:
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_child_ends_when_its_parent_is_killed() -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(STARTER)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with starter:
        assert starter.stdout
        pid = int(starter.stdout.readline())
        assert _runs(pid)
        os.kill(starter.pid, signal.SIGKILL)
        starter.wait()
    end = time.monotonic() + patience.SECONDS
    while _runs(pid):
        assert time.monotonic() < end
        os.sched_yield()
