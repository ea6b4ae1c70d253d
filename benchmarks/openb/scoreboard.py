"""Packs GPUs on the trace openb, all workloads in several random orders, beside published results.

python -m benchmarks.openb.scoreboard [--workloads=default,cpu250] [--seeds=10] [--jobs=2]

Prints a table and one figure per workload, and writes a plot. The figure is the share of all GPUs
that is allocated when pods for 130 % of them have arrived.
"""

import argparse
import concurrent.futures
import functools
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks import figures
from benchmarks.openb import replay, report, trace

FIRST_SEED: Final = 42
_BAR: Final = 40


@functools.cache
def _cluster() -> replay.Cluster:
    return replay.cluster()


def _run(case: tuple[str, int]) -> replay.Result:
    return replay.run(_cluster(), *case)


def progress(done: int, total: int, started: float, what: str) -> None:
    """Show on standard error how much is done, and about how long the rest takes."""
    filled = _BAR * done // total
    seconds = time.monotonic() - started
    left = seconds / max(1, done) * (total - done)
    bar = "#" * filled + "." * (_BAR - filled)
    print(
        f"\r[{bar}] {done}/{total} {what}, {seconds:.0f} s, about {left:.0f} s left ",
        end="" if done < total else "\n",
        file=sys.stderr,
        flush=True,
    )


def _all(cases: Sequence[tuple[str, int]], jobs: int) -> list[replay.Result]:
    started, found = time.monotonic(), []
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(_run, one) for one in cases]):
            found.append(future.result())
            progress(len(found), len(cases), started, "runs")
    return sorted(found, key=lambda one: (one.workload, one.seed))


def _figure(workload: str, results: Sequence[replay.Result]) -> figures.Figure:
    shares = [one.allocated for one in results if one.workload == workload]
    return figures.Figure(
        figure=f"openb.{workload}",
        what=f"GPUs allocated at 130 % demand, workload {workload}",
        value=round(statistics.fmean(shares), 2),
        unit="%",
        ratio=None,
        against=f"{trace.published(workload)[report.BEST]} % by {report.BEST}, published",
        min=round(min(shares), 2),
        max=round(max(shares), 2),
        runs=len(shares),
    )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workloads", default=",".join(trace.names()))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--plot", type=Path, default=Path("build/openb.svg"))
    arguments = parser.parse_args()
    chosen = arguments.workloads.split(",")
    if unknown := sorted(set(chosen) - set(trace.names())):
        parser.error(f"--workloads: {unknown[0]} does not exist; there are {trace.names()}")
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    results = _all([(one, seed) for one in chosen for seed in seeds], arguments.jobs)
    means = replay.means(results)
    print(report.table(means))
    reached, short = report.verdict(means)
    print(f"{report.BEST} is reached on {reached} of {len(means)} workloads; short on: {short}")
    arguments.plot.parent.mkdir(parents=True, exist_ok=True)
    arguments.plot.write_text(report.plot(results), encoding="utf-8")
    print(f"plot: {arguments.plot}")
    for workload in chosen:
        print(_figure(workload, results).line())


if __name__ == "__main__":
    main()
