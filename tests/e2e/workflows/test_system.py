"""The development command on a real control plane."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from tests.planes import raw

PATIENCE = 60.0


async def test_the_development_command_runs_on_real_binaries(control_plane_binaries, tmp_path):
    state, out = tmp_path / "state", tmp_path / "out"
    with out.open("w") as written:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "cli", "dev", "--plain", "--nodes", "1"),
            *("--state", str(state), "--control-plane", str(control_plane_binaries)),
            stdout=written,
            stderr=written,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    try:

        async def started():
            assert child.returncode is None, out.read_text()
            return "ready after" in out.read_text()

        await raw.eventually(started, PATIENCE)
        children = processes_below(child.pid)
        assert children, "the binaries run below the command"
        child.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(child.wait(), PATIENCE) == 0, out.read_text()
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    assert "stopped; nothing was left behind" in out.read_text()
    assert not state.exists()
    assert not [pid for pid in children if alive(pid)]


def processes_below(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(text) for text in children.split()]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
