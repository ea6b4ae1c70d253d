"""Where the load of a replay comes from: a file, a Prometheus, or a made-up day."""

import argparse
import asyncio
import dataclasses
import math
from pathlib import Path
from typing import Final

from api.wire import durations
from cli.output import progress
from cli.prometheus import options as prometheus_options
from cli.simulation import ending
from cli.simulation.load import collected, history, replay, series
from cli.snapshot import format as formats
from cli.snapshot import reader
from domain import wording

_LARGEST: Final = 256 << 20
_DAY_HOURS: Final = 24.0


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """What is replayed, for how long, and what is to be said about it."""

    source: series.Source
    hours: float
    step_seconds: float
    notes: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where load comes from, and over how long."""
    load = parser.add_mutually_exclusive_group(required=True)
    load.add_argument(
        "--load", type=Path, metavar="FILE",
        help="recorded use of pods: CSV with seconds,pod,cpu,memory, or JSON lines with these keys",
    )  # fmt: skip
    load.add_argument(
        "--day-curve", action="store_true",
        help="a made-up day from midnight: online pods use 20 to 60 %% of what they request",
    )  # fmt: skip
    about = "read the load of pods and nodes from this Prometheus, as in http://host:9090"
    prometheus_options.add_arguments(parser, about, among=load)
    long = parser.add_mutually_exclusive_group()
    long.add_argument(
        "--hours", type=float, default=0.0, metavar="NUMBER",
        help="how long (default: as long as the recording, else 24)",
    )  # fmt: skip
    long.add_argument("--days", type=float, default=0.0, metavar="NUMBER", help="the same in days")
    parser.add_argument(
        "--until", default="", metavar="TIME",
        help="end of the hours that are read with --prometheus, as 2026-01-31T08:00:00Z "
        "(default: when the snapshot was taken)",
    )  # fmt: skip
    parser.add_argument(
        "--step", default="5m", metavar="TIME", help="length of a step (default %(default)s)"
    )
    parser.add_argument(
        "--save-load", type=Path, metavar="FILE",
        help="also write what --prometheus brings to a file for --load",
    )  # fmt: skip


def check(chosen: argparse.Namespace) -> None:
    """Refuse what cannot be replayed, before anything is read."""
    if not 1 <= _step(chosen) < math.inf or not 0 <= _hours(chosen) < math.inf:
        raise ending.ArgumentError("--step, --hours and --days: write times of at least a second")
    for option, said in (("--until", chosen.until), ("--save-load", chosen.save_load)):
        if said and not chosen.prometheus:
            raise ending.ArgumentError(f"{option} goes with --prometheus URL only")
    if chosen.until:
        _moment(chosen.until)


def read(chosen: argparse.Namespace, snapshot: formats.Snapshot) -> Load:
    """Return the load of the pods and nodes of a snapshot."""
    step, hours = _step(chosen), _hours(chosen)
    if chosen.load is not None:
        recorded = _of_file(chosen.load)
        return _load(recorded, hours or recorded.until / 3600 or _DAY_HOURS, step)
    if chosen.prometheus:
        return _of_prometheus(chosen, snapshot, _load(None, hours or _DAY_HOURS, step))
    return _load(None, hours or _DAY_HOURS, step)


def _load(source: series.Source | None, hours: float, step: float) -> Load:
    steps = replay.Options(hours, step).steps
    if steps > replay.MOST_STEPS:
        raise ending.ArgumentError(
            f"--step {step:g}s makes {steps} steps of "
            f"{wording.count(f'{hours:g}', 'hour', 'hours')}: at most "
            f"{replay.MOST_STEPS} are replayed, so write a longer step"
        )
    return Load(source or series.DayCurve(), hours, step)


def _step(chosen: argparse.Namespace) -> float:
    try:
        return durations.seconds(chosen.step)
    except ValueError as error:
        raise ending.ArgumentError(f"--step: {error}") from error


def _hours(chosen: argparse.Namespace) -> float:
    return float(chosen.hours or chosen.days * _DAY_HOURS)


def _moment(text: str) -> float:
    try:
        return durations.timestamp(text)
    except ValueError as error:
        raise ending.ArgumentError(f"--until: {error}") from error


def _of_file(path: Path) -> series.Recorded:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise ending.ArgumentError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > _LARGEST:
        raise ending.ArgumentError(f"{path} is larger than {_LARGEST >> 20} MiB")
    try:
        return series.read(data.decode("utf-8", "replace"))
    except series.SeriesError as error:
        raise ending.ArgumentError(f"{path}: {error}") from error


def _of_prometheus(chosen: argparse.Namespace, snapshot: formats.Snapshot, load: Load) -> Load:
    until = _moment(chosen.until or snapshot.taken_at)
    steps = replay.Options(load.hours, load.step_seconds).steps
    asked = history.wanted(snapshot, until, steps, load.step_seconds)
    found = asyncio.run(_asked(chosen, asked))
    if chosen.save_load is not None:
        _save(chosen.save_load, found)
    hours = wording.count(f"{load.hours:g}", "hour", "hours")
    notes = (
        f"load of the {hours} before {durations.moment(until)}, by a Prometheus",
        *found.notes,
    )
    return dataclasses.replace(load, source=series.Recorded(found.rows), notes=notes)


async def _asked(chosen: argparse.Namespace, asked: collected.Wanted) -> history.History:
    async with prometheus_options.opened(chosen) as source:
        with progress.bar() as step:
            return await history.read(source, asked, step)


def _save(path: Path, found: history.History) -> None:
    try:
        path.touch(mode=0o600)
        path.write_text(series.text(found.rows), encoding="utf-8")
    except OSError as error:
        raise reader.FileError(f"{path} cannot be written: {error.strerror or error}") from error
