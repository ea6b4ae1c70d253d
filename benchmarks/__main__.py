"""Runs benchmarks one after another and collects their figures in one file.

python -m benchmarks [NAME ...] [--full] [--lines build/bench.jsonl]

Without names everything runs, scaled to end within a quarter of an hour on two cores; `--full`
takes as many rounds as a claim needs.
"""

import argparse
import importlib.util
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import figures
from benchmarks.plane import rig


class Step(NamedTuple):
    """One benchmark as it is run here."""

    name: str
    module: str
    quick: Sequence[str]
    full: Sequence[str]
    plane: bool = False
    """Whether it needs the binaries of a real control plane."""


_F1 = ("--nodes=1000", "--qps=5000")
_BUSY = "--variants=stock,ours,busy,minimal"
_F2 = ("--nodes=1000", "--qps=50")
STEPS = (
    Step("throughput", "scheduling.throughput", (*_F1, "--pods=1200", "--rounds=3"),
         (*_F1, "--pods=2000", "--rounds=7"), plane=True),
    Step("throughput-shared", "scheduling.throughput",
         (*_F1, "--pods=1200", "--rounds=3", "--layout=shared", _BUSY),
         (*_F1, "--pods=2000", "--rounds=7", "--layout=shared", _BUSY), plane=True),
    Step("default-qps", "scheduling.throughput",
         (*_F2, "--pods=600", "--rounds=2", "--variants=stock,ours"),
         (*_F2, "--pods=600", "--rounds=5"), plane=True),
    Step("throughput-100", "scheduling.throughput", ("--nodes=100", "--pods=1000", "--rounds=2"),
         ("--nodes=100", "--pods=2000", "--rounds=5"), plane=True),
    Step("throughput-5000", "scheduling.throughput", ("--nodes=5000", "--pods=600", "--rounds=1"),
         ("--nodes=5000", "--pods=1500", "--rounds=3"), plane=True),
    Step("writes", "scheduling.writes", ("--nodes=100", "--pods=200"),
         ("--nodes=1000", "--pods=1000"), plane=True),
    Step("latency", "scheduling.latency", ("--pods=50000", "--blocks=5", "--calls=100"),
         ("--blocks=9", "--calls=250"), plane=True),
    Step("extender", "scheduling.verbs", ("--rounds=3", "--calls=100"),
         ("--rounds=7", "--calls=300")),
    Step("stalls", "scheduling.stalls", ("--seconds=60",), ("--seconds=600",)),
    Step("overcommit", "overcommit", ("--rounds=5",), ("--rounds=15",)),
    Step("reviews", "admission.reviews", ("--rounds=3", "--seconds=2"), ("--rounds=7",)),
    Step("agent", "node.agent", ("--rounds=1", "--seconds=20"), ("--rounds=5", "--seconds=60")),
    Step("agent-day", "node.day", ("--pods=10",), ("--pods=100",)),
    Step("agent-peers", "node.beside_peers", ("--rounds=1",), ("--rounds=3",)),
    Step("admission", "admission.added_latency",
         ("--rounds=3", "--seconds=4", "--rates=100,200"), (), plane=True),
)  # fmt: skip


def _run(step: Step, arguments: argparse.Namespace) -> list[str]:
    """Run one benchmark, showing what it prints; return its lines of figures."""
    options = step.full if arguments.full else step.quick
    command = [sys.executable, "-m", f"benchmarks.{step.module}", *options]
    print(f"\n== {step.name}: {' '.join(command[1:])}", flush=True)
    started, lines = time.monotonic(), []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith(figures.PREFIX):
                lines.append(line)
    print(f"== {step.name}: {len(lines)} figures in {time.monotonic() - started:.0f} s", flush=True)
    if process.returncode:
        raise SystemExit(f"{step.name} failed with exit status {process.returncode}")
    return lines


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmarks that a command line names."""
    known = [step.name for step in STEPS]
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], epilog=f"Names: {', '.join(known)}."
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--full", action="store_true", help="as many rounds as a claim needs")
    parser.add_argument("--lines", type=Path, default=Path("build/bench.jsonl"))
    arguments = parser.parse_args(argv)
    unknown = set(arguments.names) - set(known)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    chosen = [step for step in STEPS if step.name in (arguments.names or known)]
    arguments.lines.parent.mkdir(parents=True, exist_ok=True)
    print(figures.machine())
    with arguments.lines.open("w", encoding="utf-8") as output:
        for step in chosen:
            if importlib.util.find_spec(f"benchmarks.{step.module}") is None:
                print(f"== {step.name}: not part of this version")
            elif step.plane and not rig.has_binaries():
                print(f"== {step.name}: needs Go or the folder KUBEBUILDER_ASSETS; left out")
            else:
                output.writelines(_run(step, arguments))
                output.flush()
    print(f"\n{figures.machine()}\nfigures are in {arguments.lines}")


if __name__ == "__main__":
    main()
