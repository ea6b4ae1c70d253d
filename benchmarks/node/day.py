"""A day of a node agent in minutes: whether its memory, its files and its notes stay as they are.

python -m benchmarks.node.day [--pods 10] [--hours 24] [--variant everything] [--trace]

The agent is a process of its own with default intervals whose clock this process turns second by
second, as fast as both can: 86,400 ticks, a pod that goes and one that comes every minute, reports,
lessons and checkpoints included. Processor time per tick is shown beside the memory, since a day
that gets slower and slower would be as bad.
"""

import argparse
import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.node import agent, generated_host
from simulator.processes import children

_AGENT = """
import asyncio, gc, json, pathlib, sys, time
from agent import app, settings
from kube.client import access
from process.runtime import clock, collector, entry, logs
from process.configuration import settings as process_settings

_, folder, host, port, *flags = sys.argv
PLACE = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}

async def main():
    named = [one.partition("=")[2] for one in flags if one.startswith("--config=")]
    chosen = process_settings.load(
        settings.Settings, file=pathlib.Path(named[0]) if named else None, environ={},
        prefix="NONE", flags=tuple(one for one in flags if not one.startswith("--config=")))
    logs.configure(chosen.log)
    found = access.in_cluster(PLACE, pathlib.Path(folder))
    turned = clock.ManualClock(time.time(), turns=4)
    reader, writer = await asyncio.open_unix_connection(f"{folder}/clock")
    async with collector.running(), app.running(chosen, access=found, clock=turned) as running:
        async for line in reader:
            words = {}
            if line.strip() == b"tell":
                names = ("history_series", "history_samples", "journal_entries", "peak_models")
                words = {name: running.registry.value(f"koord_agent_{name}") for name in names}
                if "tracemalloc" in sys.modules:
                    words["traced_mib"] = sys.modules["tracemalloc"].get_traced_memory()[0] / 2**20
                words["problem"] = running.ticks.problem
                words["failing"] = running.health.failing()
            else:
                await turned.advance(float(line))
            writer.write(json.dumps(words).encode() + b"\\n")

with asyncio.Runner(loop_factory=entry.loop_factory(app.LOOP)) as runner:
    runner.run(main())
"""
_HOUR = 3600
_QUIET_HOURS = 3
"""Then every window is full and every pod of the beginning has gone."""


class Hand:
    """Turns the clock of an agent."""

    def __init__(self) -> None:
        self._met: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = (
            asyncio.get_running_loop().create_future()
        )

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take the agent's call."""
        self._met.set_result((reader, writer))

    async def ask(self, word: str) -> dict[str, Any]:
        """Say a word and wait until the agent is done with it."""
        reader, writer = await asyncio.wait_for(asyncio.shield(self._met), 60)
        writer.write(f"{word}\n".encode())
        found: dict[str, Any] = json.loads(await asyncio.wait_for(reader.readline(), 60) or "null")
        return found

    async def close(self) -> None:
        """Let the agent go."""
        if self._met.done():
            self._met.result()[1].close()


@contextlib.asynccontextmanager
async def _listening(folder: Path) -> AsyncIterator[Hand]:
    hand = Hand()
    server = await asyncio.start_unix_server(hand.meet, folder / "clock")
    try:
        yield hand
    finally:
        await hand.close()
        server.close()


def _size(folder: Path) -> float:
    """Return what an agent has written into its folder, in MiB."""
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) / (1 << 20)


def _open_files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


async def _hour(hand: Hand, host: generated_host.Host) -> None:
    """Turn the clock for an hour in which pods come, work and go."""
    for second in range(_HOUR):
        if second % 60 == 30:
            host.end()
            host.begin()
        host.second(idle=True)
        await hand.ask("1")


async def run(arguments: argparse.Namespace) -> list[figures.Figure]:
    """Live through a day; return how memory and time at its end compare with its beginning."""
    async with contextlib.AsyncExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        entered = generated_host.world(arguments.pods, _AGENT, 1)
        host, words = await stack.enter_async_context(entered)
        folder = host.folder.parent
        hand = await stack.enter_async_context(_listening(folder))
        if arguments.trace:
            words.insert(1, "PYTHONTRACEMALLOC=5")
        more = agent.words_of(arguments.variant, folder)
        child = await children.start("agent", [*words, *more], logs)
        stack.push_async_callback(child.stop, 20.0)
        memory, costs = [], []
        for hour in range(1, arguments.hours + 1):
            begin = figures.cpu_seconds(child.pid)
            await _hour(hand, host)
            memory.append(figures.resident(child.pid))
            costs.append((figures.cpu_seconds(child.pid) - begin) * 1000 / _HOUR)
            told = await hand.ask("tell")
            if told["problem"] or told["failing"]:
                raise SystemExit(f"the agent has a problem: {told}")
            counted = ", ".join(
                f"{name} {value:.0f}" for name, value in told.items() if isinstance(value, float)
            )
            print(
                f"hour {hour}: {memory[-1]:.1f} MiB, {costs[-1]:.2f} ms of processor time a tick, "
                f"{_open_files(child.pid)} open files, {_size(folder / 'state'):.2f} MiB of notes, "
                f"{counted}",
                flush=True,
            )
    settled = min(_QUIET_HOURS, len(memory) - 1)
    what = f"of an agent with {arguments.pods} pods of 2 containers, one a minute replaced"
    return [
        figures.plain(
            "F7.day.rss", f"resident memory {what}, hour by hour", "MiB", memory, "limit 80",
        ),
        figures.paired(
            "F7.day.growth", f"resident memory {what}, at the end", "MiB",
            memory[-1:], memory[settled : settled + 1], f"after {settled + 1} hours",
        ),
        figures.plain(
            "F7.day.tick", f"processor time per tick {what}, hour by hour", "ms", costs,
        ),
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.node.day", description=__doc__)
    parser.add_argument("--pods", type=int, default=10)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--variant", choices=sorted(agent.VARIANTS), default="everything")
    parser.add_argument("--trace", action="store_true", help="count what Python allocates as well")
    figures.show(*asyncio.run(run(parser.parse_args(arguments))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
