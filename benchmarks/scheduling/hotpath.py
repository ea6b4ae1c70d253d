"""Where the processor time of the extender goes while a real scheduler drains a queue.

python -m benchmarks.scheduling.hotpath [--nodes 1000] [--pods 1500] [--rounds 3] [--top 40]
    [--kilobytes 7] [--layout apart|shared] [--keep FILE] [--by time|steps]

Rounds with and without the profiler alternate, so that its own cost shows. Only samples between the
first and the last call of the scheduler count; shares are turned into microseconds per pod by the
processor time that was measured without the profiler.

By steps, the opcodes that the interpreter executes are counted instead. They hold nothing of what
the kernel and extensions do, but do not follow the noise of a machine: what saves a percent shows.
The extender is some thirty times slower then, so that a few hundred pods are enough.
"""

import argparse
import collections
import dataclasses
import os
import re
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import uvloop

from benchmarks import figures
from benchmarks.plane import feed, layouts, rig
from benchmarks.scheduling import sampled, variants

_CALLS = re.compile(r"extender/[\w/]+\.py:(?:\w+\.)*_?(?:filter|prioritize|bind)\b")
"""A function of the extender that answers a call."""
_OURS = re.compile(r"^(?:api|domain|certs|process|kube|extender)/")


def between_calls(samples: Sequence[str]) -> list[str]:
    """Return the samples from the first to the last that answers a call of the scheduler."""
    hits = [at for at, sample in enumerate(samples) if _CALLS.search(sample)]
    return list(samples[hits[0] : hits[-1] + 1]) if hits else []


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """Shares of all samples."""

    samples: int
    within: dict[str, float]
    """By function: the share of samples in it or in what it called."""
    itself: dict[str, float]
    """By function of ours: the share in it or in libraries that it called."""
    modules: dict[str, float]
    """The same by module."""


def profile(samples: Sequence[str]) -> Profile:
    """Add samples up."""
    within: collections.Counter[str] = collections.Counter()
    itself: collections.Counter[str] = collections.Counter()
    modules: collections.Counter[str] = collections.Counter()
    for sample in samples:
        functions = [place.rpartition(":")[0] for place in sample.split(";")]
        within.update(set(functions))
        leaf = next((name for name in reversed(functions) if _OURS.match(name)), "libraries")
        itself[leaf] += 1
        modules[leaf.partition(":")[0]] += 1
    total = max(1, len(samples))
    return Profile(
        len(samples),
        *(
            {name: count / total for name, count in one.items()}
            for one in (within, itself, modules)
        ),
    )


def _largest(shares: dict[str, float], top: int) -> Iterable[tuple[str, float]]:
    return sorted(shares.items(), key=lambda item: -item[1])[:top]


def _show(found: Profile, per_pod: float, unit: str, top: int) -> None:
    """Print three tables: by module, by function itself, by function with what it calls."""
    print(f"\n{found.samples} samples; {per_pod:.0f} {unit} per pod")
    ours = {name: share for name, share in found.within.items() if _OURS.match(name)}
    for title, shares in (
        ("modules, with the libraries that they call", found.modules),
        ("functions, with the libraries that they call", found.itself),
        ("functions, with everything that they call", ours),
    ):
        print(f"\n{'share':>6}{'per pod':>8}  {title}")
        for name, share in _largest(shares, top):
            print(f"{share:>6.1%}{share * per_pod:>8.0f}  {name}")


async def _main(arguments: argparse.Namespace) -> None:
    print(f"{figures.machine()}\n{arguments.nodes} nodes, {arguments.pods} pods per run")
    by_steps = arguments.by == "steps"
    load = variants.Load(arguments.pods, arguments.kilobytes)
    samples: list[str] = []
    work: dict[str, list[float]] = {"plain": [], "sampled": []}
    with tempfile.TemporaryDirectory(prefix="koord-bench-") as folder:
        target = Path(folder) / "samples"
        program = ("benchmarks.scheduling.sampled", arguments.by, str(target), "extender")
        ways = {
            "plain": variants.Variant("ours", busy=arguments.busy),
            "sampled": variants.Variant("ours", busy=arguments.busy, program=program),
        }
        if by_steps:
            del ways["plain"]
        async with rig.running(rig.even(arguments.nodes), layout=arguments.layout) as made:
            for turn in range(arguments.rounds):
                for name in list(ways)[:: 1 if turn % 2 else -1]:
                    run = await variants.drained(made, ways[name], load)
                    work[name].append(run.milliseconds["extender"])
                    print(
                        f"round {turn} {name}: {run.pods_per_second:.0f} pods/s, extender "
                        f"{run.milliseconds['extender']:.2f} ms/pod, load {os.getloadavg()[0]:.1f}",
                        flush=True,
                    )
                samples += between_calls(target.read_text(encoding="utf-8").splitlines())
    if arguments.keep:
        arguments.keep.write_text("\n".join(samples), encoding="utf-8")
    if by_steps:
        steps = len(samples) * sampled.INTERVAL_STEPS / (arguments.pods * arguments.rounds)
        _show(profile(samples), steps, "steps of the interpreter", arguments.top)
        what = "steps of the interpreter in the extender per pod"
        figures.show(figures.plain("hotpath.steps", what, "steps/pod", [steps]))
        return
    _show(profile(samples), statistics.median(work["plain"]) * 1000, "us", arguments.top)
    figures.show(
        figures.paired(
            "hotpath.overhead", "processor time of the extender per pod with the profiler",
            "ms/pod", work["sampled"], work["plain"], "without the profiler",
        )
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1500)
    parser.add_argument("--kilobytes", type=int, choices=sorted(feed.KILOBYTES), default=7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--top", type=int, default=40)
    parser.add_argument("--by", choices=sampled.SAMPLERS, default="time")
    parser.add_argument("--busy", action="store_true", help="refuse a third of the nodes")
    parser.add_argument("--keep", type=Path, help="file for the samples, one a line, root first")
    parser.add_argument(
        "--layout", type=layouts.Layout, choices=layouts.Layout, default=layouts.Layout.APART
    )
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
