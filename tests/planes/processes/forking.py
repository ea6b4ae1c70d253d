"""Processes of the product forked from one that has imported them: an import takes a second each.

The server is a process of its own without threads and without an event loop, so that nothing
but imported modules is inherited. A forked process runs its module as `python -m` does, in a
session of its own, and is killed when the server ends, which ends with the tests.
"""

import asyncio
import ctypes
import gc
import json
import os
import pathlib
import runpy
import signal
import socket
import subprocess
import sys

from simulator.processes import children

ROOT = pathlib.Path(__file__).parents[3]
# Loaded before the fork: a forked child should not load libraries.
_LIBC = ctypes.CDLL(None, use_errno=True)


class Forked:
    """A forked process, with what a `children.Child` asks of the processes of asyncio."""

    def __init__(self, pid):
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)
        self._ended = asyncio.Event()
        self.returncode = None
        """Not known to anybody but the server: -1 once the process has ended."""
        asyncio.get_running_loop().add_reader(self._descriptor, self._end)

    def _end(self):
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self.returncode = -1
        self._ended.set()

    async def wait(self):
        await self._ended.wait()
        return self.returncode


class Server:
    """The process that forks; one for each process of tests, started when it is first needed."""

    def __init__(self, *modules):
        self._modules = modules
        self._process = None

    def start(self, name, command, folder, talk=None):
        """Fork a process that runs a module: `command` is what follows `python -m`.

        Where `talk` names a listening Unix socket, the process reads and prints there.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.planes.processes.forking", *self._modules],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                preexec_fn=children.die_with_parent,
            )
        log = folder / f"{name}.log"
        wanted = {"command": command, "log": str(log), "environ": dict(os.environ), "talk": talk}
        self._process.stdin.write(json.dumps(wanted).encode() + b"\n")
        self._process.stdin.flush()
        return children.Child(name, Forked(int(self._process.stdout.readline())), log)


SERVER = Server("extender", "manager", "webhook", "descheduler")


def serve(modules):
    """Fork for each line that is read, until the other side is gone."""
    for module in modules:
        runpy.run_module(module, run_name="imported", alter_sys=False)
    gc.collect()
    gc.freeze()
    # Nobody waits for the children, so the kernel forgets them at once.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        wanted = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(wanted)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def _become(wanted):
    """Go on as the process that was asked for."""
    os.setsid()
    _LIBC.prctl(children.PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output = os.open(wanted["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number in (1, 2):
        os.dup2(output, number)
    if wanted["talk"] is None:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    else:
        with socket.socket(socket.AF_UNIX) as talk:
            talk.connect(wanted["talk"])
            for number in (0, 1):
                os.dup2(talk.fileno(), number)
    os.environ.clear()
    os.environ.update(wanted["environ"])
    gc.unfreeze()
    module, *arguments = wanted["command"]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit(0)


if __name__ == "__main__":
    serve(sys.argv[1:])
