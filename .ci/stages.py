"""Run the stages of CI and hold each to what it has to run.

A stage passes when its target ends well, so many tests passed as `stages.toml` demands, and
nothing was skipped that is not listed there. At the end stands what ran, for how long.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent
PASSED = re.compile(r"^=+ .*?\b(\d+) passed\b.*=+\s*$", re.MULTILINE)
SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] (\S+?): (.*?)\s*$", re.MULTILINE)
LEFT_OUT = re.compile(r"^(?:not run|skipped): (.*?)\s*$", re.MULTILINE)
NEEDS = {
    "root": (lambda: os.geteuid() == 0, "this user is not root"),
    "go": (
        lambda: bool(shutil.which("go") or os.environ.get("KUBEBUILDER_ASSETS")),
        "there is neither a Go toolchain nor KUBEBUILDER_ASSETS",
    ),
    "cgroups": (lambda: pathlib.Path("/sys/fs/cgroup").is_dir(), "there are no cgroups"),
}


@dataclasses.dataclass(frozen=True)
class Skip:
    """A reason for which tests of a stage may be skipped."""

    reason: str
    most: int
    why: str


@dataclasses.dataclass(frozen=True)
class Stage:
    """One target of tests and what it has to run."""

    name: str
    make: str
    floor: int
    skips: tuple[Skip, ...] = ()
    lacks: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    beside: str = ""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a stage ended: a sentence, and what is wrong with it."""

    said: str
    faults: tuple[str, ...] = ()


def read(text: str) -> tuple[list[Stage], Mapping[str, int]]:
    """Read the stages in their order, and the budgets in minutes."""
    document = tomllib.loads(text)
    raws = document["stages"]
    stages = [_stage(name, raws.get(raw.get("like"), {}) | raw) for name, raw in raws.items()]
    names = {stage.name for stage in stages}
    for stage in stages:
        if stage.beside and stage.beside not in names:
            raise ValueError(f"{stage.name}: there is no stage {stage.beside} to run beside")
    return stages, document["budget"]


def _stage(name: str, raw: Mapping[str, Any]) -> Stage:
    skips = tuple(Skip(**one) for one in raw.get("skips", ()))
    lists = {key: tuple(raw.get(key, ())) for key in ("lacks", "needs")}
    return Stage(name, raw["make"], raw["floor"], skips, beside=raw.get("beside", ""), **lists)


def judge(stage: Stage, status: int, output: str, seconds: float, everything: bool) -> Outcome:
    """Return how a stage ended, from what its target printed."""
    passed = sum(map(int, PASSED.findall(output)))
    skipped = [(int(count), reason) for count, _, reason in SKIPPED.findall(output)]
    told = LEFT_OUT.findall(output)
    faults = [] if status == 0 else [f"make {stage.make} ended with {status}"]
    if not passed and status == 0:
        reason = told[-1] if told else " ".join(sorted({reason for _, reason in skipped}))
        return _left_out(stage, reason, everything)
    if passed < stage.floor:
        faults.append(f"{passed} tests passed, fewer than the floor of {stage.floor}")
    faults += _unlisted(stage, skipped)
    many = sum(count for count, _ in skipped)
    said = f"{passed} tests ran and passed (floor {stage.floor}), {many} skipped, {seconds:.0f} s"
    return Outcome(said, tuple(faults))


def _left_out(stage: Stage, reason: str, everything: bool) -> Outcome:
    said = f"not run: {reason or 'nothing says why'}"
    listed = any(re.search(pattern, reason) for pattern in stage.lacks) if reason else False
    if everything or not listed:
        return Outcome(said, ("nothing ran",))
    return Outcome(said)


def _unlisted(stage: Stage, skipped: Sequence[tuple[int, str]]) -> list[str]:
    counts = dict.fromkeys(stage.skips, 0)
    faults = []
    for count, reason in skipped:
        skip = next((one for one in stage.skips if re.search(one.reason, reason)), None)
        if skip is None:
            faults.append(f"{count} tests were skipped for a reason that is not listed: {reason}")
        else:
            counts[skip] += count
    faults += [
        f"{count} tests were skipped for {skip.reason!r}, more than {skip.most}"
        for skip, count in counts.items()
        if count > skip.most
    ]
    return faults


def lacking(stage: Stage) -> str:
    """Return what this machine lacks for a stage."""
    missing = (why for there, why in map(NEEDS.__getitem__, stage.needs) if not there())
    return "; ".join(missing)


def run(stage: Stage, everything: bool) -> Outcome:
    """Run one stage, showing what it prints."""
    if reason := lacking(stage):
        return Outcome(f"not run: {reason}", ("nothing ran",) if everything else ())
    started = time.monotonic()
    lines = []
    with subprocess.Popen(
        ["make", "--no-print-directory", stage.make],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            # The guest's console ends its lines with a carriage return.
            lines.append(line.replace("\r", ""))
            print(f"{stage.name}| {line}" if stage.beside else line, end="", flush=True)
    output = "".join(lines)
    return judge(stage, process.returncode, output, time.monotonic() - started, everything)


def together(stages: Sequence[Stage], everything: bool) -> dict[str, Outcome]:
    """Run stages one after another, each with those that run beside it."""
    found: dict[str, Outcome] = {}

    def keep(stage: Stage) -> None:
        found[stage.name] = run(stage, everything)
        print(f"== {stage.name}: {found[stage.name].said}", flush=True)

    for stage in stages:
        if stage.beside:
            continue
        others = [one for one in stages if one.beside == stage.name]
        threads = [threading.Thread(target=keep, args=(one,)) for one in others]
        for thread in threads:
            thread.start()
        keep(stage)
        for thread in threads:
            thread.join()
        if any(found[one.name].faults for one in (stage, *others)):
            # Failures are ordered by what they cost: what comes later has not been asked for yet.
            break
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the stages that are named, or all; say what ran, and fail for whatever is wrong."""
    stages, budget = read((HERE / "stages.toml").read_text(encoding="utf-8"))
    unknown = set(arguments) - {stage.name for stage in stages}
    if unknown:
        print(f"unknown stages: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [stage for stage in stages if not arguments or stage.name in arguments]
    if arguments:
        chosen = [dataclasses.replace(stage, beside="") for stage in chosen]
    kind = "warm" if _is_warm() else "cold"
    started = time.monotonic()
    found = together(chosen, bool(os.environ.get("KOORD_CI_ALL")))
    minutes = (time.monotonic() - started) / 60
    print()
    for stage in chosen:
        outcome = found.get(stage.name, Outcome("not reached"))
        print(f"== {stage.name}: {outcome.said}")
        for fault in outcome.faults:
            print(f"   FAILED: {fault}")
    slow = minutes > budget[kind]
    print(f"== {minutes:.1f} minutes, {kind}; at most {budget[kind]}{', TOO SLOW' if slow else ''}")
    return int(slow or any(outcome.faults for outcome in found.values()))


def _is_warm() -> bool:
    """Tell whether the programs of a control plane have been built before."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    built = pathlib.Path(base, "koord", "control-plane").glob("*/kube-scheduler")
    return bool(os.environ.get("KUBEBUILDER_ASSETS")) or any(built)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
