"""A node agent beside what others read a node with, on the same real control groups, in one run.

python -m benchmarks.node.beside_peers [--pods 100] [--seconds 60] [--rounds 3]

The groups of so many pods of two containers in a subtree of our own, laid out as a kubelet does it,
with a process here and there; an agent with default intervals and its strategies; node_exporter
with what it collects by default; cAdvisor as kubelets embed it, looking every ten seconds. All run
at once and are scraped every fifteen seconds, so that they meet the same machine; they do not do
the same: node_exporter reads no group at all, cAdvisor also disks and networks, and neither decides
anything.
"""

import argparse
import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import aiohttp

from benchmarks import figures
from benchmarks.node import generated_host
from benchmarks.plane import peers
from process.http import ports
from process.runtime import clock as clocks
from process.runtime import supervise
from simulator.processes import children
from tests.planes.host import kubepods

_AGENT = "agent"
_BUSY = 4
"""Of so many pods one has a process that works a little."""
_WORK = "while :; do sleep 0.1; done"


class Running:
    """What is measured, by name."""

    def __init__(self, logs: Path, stack: contextlib.AsyncExitStack) -> None:
        self.processes: dict[str, children.Child] = {}
        self._logs, self._stack = logs, stack
        self._urls: list[str] = []

    async def start(self, name: str, words: Sequence[str], port: int = 0) -> None:
        """Start a program that tells its figures on a port."""
        child = await children.start(name, words, self._logs)
        self._stack.push_async_callback(child.stop, 20.0)
        self.processes[name] = child
        if not port:
            # It says where it listens.
            for _ in range(100):
                if child.log.read_text().strip():
                    break
                await asyncio.sleep(0.1)
            port = int(child.log.read_text().split("\n")[0].rpartition(":")[2])
        self._urls.append(f"http://127.0.0.1:{port}/metrics")

    async def scrape(self) -> None:
        """Read all figures every fifteen seconds, as is usual."""
        async with aiohttp.ClientSession() as session:
            while True:
                for url in self._urls:
                    async with session.get(url) as answer:
                        await answer.read()
                await asyncio.sleep(15)

    async def measured(self, seconds: int) -> dict[str, tuple[float, float]]:
        """Return the share of a core in percent and the resident MiB of each."""
        before = {n: figures.cpu_seconds(c.pid) for n, c in self.processes.items()}
        await asyncio.sleep(seconds)
        return {
            name: (
                100 * (figures.cpu_seconds(child.pid) - before[name]) / seconds,
                figures.resident(child.pid),
            )
            for name, child in self.processes.items()
        }


@contextlib.asynccontextmanager
async def _groups(base: str, host: generated_host.Host) -> AsyncIterator[kubepods.Groups]:
    """Make the groups of all pods below one of our own."""
    groups = kubepods.Groups(base, "cgroupfs", nested=True)
    try:
        for number, pod in enumerate(host.pods):
            uid, kind = pod["metadata"]["uid"], pod["status"]["qosClass"]
            above = groups.layout.pod_group(uid, kind)
            for one in pod["status"]["containerStatuses"]:
                group = groups.make(groups.layout.container_group(above, one["containerID"]))
            if number % _BUSY == 0:
                groups.start(group, _WORK)
        yield groups
    finally:
        await groups.remove()


async def _started(running: Running, base: str, words: list[str]) -> None:
    health, listening = ports.take(2)
    places = ("--host.proc=/proc", "--host.sys=/sys", "--host.cgroup=/sys/fs/cgroup")
    changed = [word for word in words if not word.startswith(("--host.proc", "--host.sys",
               "--host.cgroup", "--health.port"))]  # fmt: skip
    await running.start(
        _AGENT,
        [*changed, *places, f"--host.kubelet-root={base}", f"--health.port={health}"],
        health,
    )
    exporter = peers.program("node_exporter")
    if exporter is not None:
        listen = f"--web.listen-address=127.0.0.1:{listening}"
        await running.start("node_exporter", [str(exporter), listen], listening)
    advisor = peers.program("cadvisor")
    if advisor is not None:
        await running.start("cadvisor", [str(advisor), f"--prefix=/{base}"])


async def run(arguments: argparse.Namespace) -> list[figures.Figure]:
    """Measure all of them at once, in several rounds."""
    base = f"koord-bench-{os.getpid()}"
    async with contextlib.AsyncExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        host, words = await stack.enter_async_context(generated_host.world(arguments.pods))
        await stack.enter_async_context(_groups(base, host))
        running = Running(logs, stack)
        await _started(running, base, words)
        await clocks.SystemClock().sleep(15)
        supervisor = await stack.enter_async_context(supervise.Supervisor("scrapes"))
        supervisor.start("scrape", running.scrape)
        rounds = []
        for number in range(arguments.rounds):
            rounds.append(await running.measured(arguments.seconds))
            for name, (share, memory) in rounds[-1].items():
                print(f"round {number + 1} {name}: {share:.2f} % of a core, {memory:.1f} MiB")
    what = f"with {arguments.pods} pods of 2 containers, real groups"
    made = []
    for name in rounds[0]:
        for place, (kind, unit) in enumerate((("cpu", "% of a core"), ("rss", "MiB"))):
            taken = [one[name][place] for one in rounds]
            ours = [one[_AGENT][place] for one in rounds]
            text = f"{'processor time' if kind == 'cpu' else 'resident memory'} of {name} {what}"
            figure = f"F7.peers.{name}.{kind}"
            if name == _AGENT:
                made.append(figures.plain(figure, text, unit, taken))
            else:
                made.append(figures.paired(figure, text, unit, ours, taken, f"agent / {name}"))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.node.beside_peers", description=__doc__
    )
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    if os.geteuid() != 0 or not os.access("/sys/fs/cgroup", os.W_OK):
        print("agent-peers: left out, it makes control groups, which takes root")
        return 0
    figures.show(*asyncio.run(run(chosen)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
