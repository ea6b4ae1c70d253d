"""Runs benchmarks one after another and collects their figures in one file.

python -m benchmarks [NAME ...] [--full] [--lines build/bench.jsonl] [-- ARGUMENT ...]

A name is that of a step or of a figure (F1.shared, K, F11). Without names everything runs, scaled
down; `--full` takes as many rounds as a claim needs. What follows `--` is given to each benchmark,
where it replaces an argument of the same name: `F1.shared -- --rounds=5 --variants=stock,ours`.
"""

import argparse
import importlib.util
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import figures, steps
from benchmarks.plane import rig

_MORE = "--"


def _run(step: steps.Step, arguments: argparse.Namespace) -> list[str]:
    """Run one benchmark, showing what it prints; return its lines of figures."""
    options = (*(step.full if arguments.full else step.quick), *arguments.more)
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
    known = ", ".join(step.name for step in steps.STEPS)
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], epilog=f"Names: {known}."
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--full", action="store_true", help="as many rounds as a claim needs")
    parser.add_argument("--lines", type=Path, default=Path("build/bench.jsonl"))
    given = sys.argv[1:] if argv is None else list(argv)
    at = given.index(_MORE) if _MORE in given else len(given)
    arguments = parser.parse_args(given[:at], argparse.Namespace(more=given[at + 1 :]))
    try:
        chosen = steps.chosen(arguments.names)
    except steps.UnknownError as failure:
        parser.error(str(failure))
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
