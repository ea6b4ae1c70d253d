"""A node whose test process was killed ends with it, and the next run removes its groups."""

import os
import pathlib
import signal
import subprocess
import sys

from tests.planes import raw
from tests.planes.node import node_groups

ROOT = pathlib.Path(__file__).parents[3]
SOURCE = """
import asyncio, pathlib, sys
from tests.planes.node import node, node_programs
from tests.e2e import binaries

async def main():
    programs = node_programs.build(binaries.version())
    made = node.Node("killed", pathlib.Path(sys.argv[1]), programs)
    made.groups.create()
    await made.start_root()
    print(made.pid, made.groups.name, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def alive(pid):
    # A process that nobody has waited for is no more than its number.
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def started(folder):
    command = (sys.executable, "-c", SOURCE, str(folder))
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


async def test_nothing_is_left_of_a_killed_run(programs, tmp_path):
    with started(tmp_path) as victim:
        try:
            pid, name = victim.stdout.readline().split()
            groups = [hierarchy / name for hierarchy in node_groups.hierarchies()]
            assert all(group.is_dir() for group in groups)
            # Whoever still lives is left alone.
            await node_groups.remove_stale()
            assert all(group.is_dir() for group in groups)
        finally:
            os.kill(victim.pid, signal.SIGKILL)

    async def ended():
        return not alive(pid)

    await raw.eventually(ended, 30.0)
    await node_groups.remove_stale()
    assert not any(group.exists() for group in groups)
