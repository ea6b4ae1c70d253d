"""What a node agent costs: processor time and memory with 100 pods of two containers.

python -m benchmarks.agent [--pods 100] [--seconds 60] [--rounds 3]

A generated host on a file system in memory, whose counters move once a second; an API server and a
kubelet in this process; the agent as a process of its own with default intervals, once with
everything that is on by default, once with every strategy deciding and writing. It logs in as every
pod does: what reads a kubeconfig takes 35 MiB that no agent on a node has.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent import gates
from benchmarks import agent_host, figures
from simulator.processes import children

_INSTEAD = "BECPUManager"
"""With this gate best effort is not shrunk, which is what costs."""
_GOALS = {"cpu": 2.0, "memory": 80.0}
VARIANTS: Mapping[str, Sequence[str]] = {
    "default": (),
    "everything": (
        "--strategies.mode=enforce",
        *(f"--feature-gates.{gate.name}=true" for gate in gates.GATES if gate.name != _INSTEAD),
    ),
}


async def _measure(variant: str, pods: int, seconds: int) -> tuple[float, float, float]:
    """Return the share of a core in percent, MiB at the end and MiB at the beginning."""
    async with agent_host.world(pods) as (host, words):
        with tempfile.TemporaryDirectory() as logs:
            child = await children.start("agent", [*words, *VARIANTS[variant]], Path(logs))
            try:
                for _ in range(10):
                    await asyncio.sleep(1)
                    host.second()
                begin, first = figures.cpu_seconds(child.pid), figures.resident(child.pid)
                for _ in range(seconds):
                    await asyncio.sleep(1)
                    host.second()
                spent, last = figures.cpu_seconds(child.pid) - begin, figures.resident(child.pid)
            finally:
                await child.stop(20.0)
    return 100 * spent / seconds, last, first


async def run(arguments: argparse.Namespace) -> list[figures.Figure]:
    """Measure every variant in every round."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in VARIANTS}
    for round_ in range(arguments.rounds):
        for variant, taken in found.items():
            taken.append(await _measure(variant, arguments.pods, arguments.seconds))
            share, memory, first = taken[-1]
            print(
                f"round {round_ + 1} {variant}: {share:.2f} % of a core, {memory:.1f} MiB "
                f"({first:.1f} after ten seconds)"
            )
    what = f"with {arguments.pods} pods of 2 containers"
    made = []
    for variant, taken in found.items():
        made += [
            figures.plain(
                f"F9.{variant}.cpu", f"processor time of the agent {what}", "% of a core",
                [one[0] for one in taken], f"goal {_GOALS['cpu']}",
            ),
            figures.plain(
                f"F9.{variant}.memory", f"resident memory of the agent {what}", "MiB",
                [one[1] for one in taken], f"limit {_GOALS['memory']}",
            ),
        ]  # fmt: skip
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agent", description=__doc__)
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    figures.show(*asyncio.run(run(parser.parse_args(arguments))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
