"""What a node agent costs: processor time and memory with 100 pods of two containers.

python -m benchmarks.node.agent [--pods 100] [--seconds 60] [--rounds 3]

A generated host on a file system in memory, whose counters move once a second; an API server, a
kubelet and a container runtime in this process, which asks the agent by NRI about a container every
five seconds; the agent as a process of its own with default intervals: with the settings that the
chart gives it (F7), with those that the process has by itself, and with every strategy deciding and
writing. It logs in as every pod does: what reads a kubeconfig takes 35 MiB that no
agent on a node has.
"""

import argparse
import asyncio
import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from agent.assembly import feature_gates
from benchmarks import figures
from benchmarks.node import container_runtime, generated_host
from simulator.processes import children

_INSTEAD = "BECPUManager"
"""With this gate best effort is not shrunk, which is what costs."""
_GOALS = {"cpu": 2.0, "rss": 62.0}
CHART = "chart"
_PLACES = ("host", "kubelet", "log", "nri")
"""Sections of the chart's settings that say where things are, which is elsewhere here."""
VARIANTS: Mapping[str, Sequence[str]] = {
    CHART: (),
    "defaults": (),
    "everything": (
        "--strategies.mode=enforce",
        *(
            f"--feature-gates.{gate.name}=true"
            for gate in feature_gates.GATES
            if gate.name != _INSTEAD
        ),
    ),
}


def chart_settings() -> dict[str, Any]:
    """Return what the chart sets, as its rendered manifest says."""
    (found,) = (
        one
        for one in generated_host.manifests()
        if one["kind"] == "ConfigMap" and "settings.yaml" in one["data"]
    )
    settings = yaml.safe_load(found["data"]["settings.yaml"])
    return {name: part for name, part in settings.items() if name not in _PLACES}


def words_of(variant: str, folder: Path) -> list[str]:
    """Return the arguments of an agent of this variant; files of theirs lie in the folder."""
    if variant != CHART:
        return list(VARIANTS[variant])
    file = folder / "settings.yaml"
    file.write_text(yaml.safe_dump(chart_settings()), encoding="utf-8")
    return [f"--config={file}"]


async def _measure(variant: str, pods: int, seconds: int) -> tuple[float, float, float]:
    """Return the share of a core in percent, MiB at the end and MiB at the beginning."""
    async with contextlib.AsyncExitStack() as stack:
        host, words = await stack.enter_async_context(generated_host.world(pods))
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        runtime, more = stack.enter_context(container_runtime.running(logs, host.pods))
        child = await children.start("agent", [*words, *words_of(variant, logs), *more], logs)
        try:
            for _ in range(10):
                await asyncio.sleep(1)
                host.second()
            begin, first = figures.cpu_seconds(child.pid), figures.resident(child.pid)
            for _ in range(seconds):
                await asyncio.sleep(1)
                host.second()
            spent, last = figures.cpu_seconds(child.pid) - begin, figures.resident(child.pid)
            runtime.check()
        finally:
            await child.stop(20.0)
    return 100 * spent / seconds, last, first


async def run(arguments: argparse.Namespace) -> list[figures.Figure]:
    """Measure every variant in every round."""
    found: dict[str, list[tuple[float, float, float]]] = {
        name: [] for name in arguments.variants.split(",")
    }
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
        row = "F7" if variant == CHART else f"F7.{variant}"
        made += [
            figures.plain(
                f"{row}.cpu", f"processor time of the agent {what}", "% of a core",
                [one[0] for one in taken], f"goal {_GOALS['cpu']}",
            ),
            figures.plain(
                f"{row}.rss", f"resident memory of the agent {what}", "MiB",
                [one[1] for one in taken], f"goal {_GOALS['rss']}",
            ),
        ]  # fmt: skip
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.node.agent", description=__doc__)
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    figures.show(*asyncio.run(run(parser.parse_args(arguments))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
