"""Keeps the scorecard of every day: in memory while it lasts, in one small file afterwards."""

import asyncio
import logging
import re
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agent.apply import audit
from agent.apply.evictions import evictor
from agent.decide import planner
from agent.host import files
from agent.loop import ticks
from agent.model import state
from agent.report import scorecard
from process.runtime import clock as clocks
from process.runtime import metrics

_logger = logging.getLogger(__name__)
_NAME: Final = re.compile(r"\d{4}-\d{2}-\d{2}\.day")
_SUFFIX: Final = ".day"
FOLDER: Final = "scorecard"
"""Where the days lie below the state folder."""
MOST_BYTES: Final = 512 * 1024
KEEP_SECONDS: Final = 60.0
LONGEST_TICK: Final = 10.0
"""Seconds that one look stands for at most; there was none in between."""


class Scorekeeper:
    """Adds up what the loop decides and what becomes of it."""

    def __init__(
        self, folder: Path, clock: clocks.Clock, loop: ticks.Ticks, figures: metrics.Registry
    ) -> None:
        self.problem: str | None = None
        """What could not be read or written, None when all is well."""
        self._folder = folder
        self._clock = clock
        self._loop = loop
        self._day: scorecard.Day | None = None
        self._looked: float | None = None
        self._writing = threading.Lock()
        self._gauge = figures.gauge(
            "koord_agent_last_day", "The scorecard of the latest complete day.", ["figure"]
        )
        earlier = [path for path in _files(self._folder) if path.stem < scorecard.date(clock.now())]
        if earlier and (last := self._read(earlier[-1])) is not None:
            self._show(last)

    def tick(self) -> None:
        """Add what the latest look says."""
        picture, now = self._loop.picture, self._clock.monotonic()
        if picture is None:
            return
        seconds = 0.0 if self._looked is None else min(now - self._looked, LONGEST_TICK)
        self._looked = now
        enforced = self._loop.mode(ticks.SUPPRESS) is planner.Mode.ENFORCE
        suppress = self._loop.decisions.get(ticks.SUPPRESS)
        self._today(picture.at).tick(
            scorecard.second(picture, suppress, seconds, enforced=enforced)
        )

    def records(self, records: Sequence[audit.Record]) -> None:
        """Add what became of edits."""
        keys = {(record.role, group) for record in records for group in record.groups}
        owners = self._loop.owners(keys)
        places = _places(self._loop.picture, {group for _, group in keys})
        day = self._today(self._clock.now())
        for record in records:
            for group in record.groups:
                strategy = owners.get((record.role, group), "")
                day.count(scorecard.About(strategy, *places.get(group, ("", ""))), record.outcome)

    def answered(self, answer: evictor.Answer) -> None:
        """Add what became of an eviction."""
        wish, picture = answer.eviction, self._loop.picture
        pods = picture.pods if picture is not None else ()
        pod = next((pod for pod in pods if pod.pod.metadata.uid == wish.uid), None)
        quality = pod.effective_qos.value if pod is not None else ""
        about = scorecard.About(self._loop.strategy_of(wish.feature), wish.namespace, quality)
        online = pod is not None and not pod.best_effort
        self._today(self._clock.now()).evict(about, answer.outcome, wish.uid, online=online)

    async def run(self) -> None:
        """Keep the day for ever, so that a killed agent loses a minute of it."""
        while True:
            await self._clock.sleep(KEEP_SECONDS)
            if self._day is not None:
                await asyncio.to_thread(self._write, self._day.date, self._day.written())

    def stop(self) -> None:
        """Keep the day before the process ends."""
        if self._day is not None:
            self._write(self._day.date, self._day.written())

    def today(self) -> dict[str, Any] | None:
        """Return the present day as a NodeMetric carries it; None before the first look."""
        return None if self._day is None else self._day.as_status()

    def days(self, most: int = scorecard.KEEP_DAYS) -> list[dict[str, Any]]:
        """Return the latest days, newest first."""
        today = self._day
        found = [] if today is None else [today.as_json()]
        for path in reversed(_files(self._folder)):
            if len(found) >= most:
                break
            if today is None or path.stem != today.date:
                day = self._read(path)
                found += [] if day is None else [day.as_json()]
        return sorted(found, key=lambda day: str(day["date"]), reverse=True)[:most]

    def _today(self, at: float) -> scorecard.Day:
        """Return the day of a moment; a clock that goes back goes on with what it finds."""
        date = scorecard.date(at)
        if self._day is None or self._day.date != date:
            before = self._day
            if before is not None:
                self._write(before.date, before.written())
                self._tell(before)
            self._day = self._read(self._folder / f"{date}{_SUFFIX}") or scorecard.Day(date)
        return self._day

    def _tell(self, day: scorecard.Day) -> None:
        said = " ".join(f"{name}={value:g}" for name, value in day.summary().items())
        _logger.info("scorecard date=%s %s", day.date, said)
        self._show(day)

    def _show(self, day: scorecard.Day) -> None:
        for name, value in day.summary().items():
            self._gauge.labels(name).set(value)

    def _write(self, date: str, data: bytes) -> None:
        try:
            with self._writing:
                files.replace(self._folder / f"{date}{_SUFFIX}", data)
            for path in _files(self._folder)[: -scorecard.KEEP_DAYS]:
                path.unlink(missing_ok=True)
        except OSError as error:
            self._failed(f"{self._folder}: scorecard not written: {error.strerror or error}")
            return
        self.problem = None

    def _read(self, path: Path) -> scorecard.Day | None:
        try:
            return _load(path)
        except FileNotFoundError:
            return None
        except (OSError, scorecard.ScoreError) as error:
            self._failed(f"{path} not read, the day begins afresh: {error}")
            return None

    def _failed(self, problem: str) -> None:
        if problem != self.problem:
            _logger.warning("%s", problem)
        self.problem = problem


def kept(folder: Path, most: int) -> tuple[list[scorecard.Day], list[str]]:
    """Return the latest days that lie in a folder, newest first, and what cannot be read."""
    days, problems = [], []
    for path in reversed(_files(folder)[-most:]):
        try:
            days.append(_load(path))
        except (OSError, scorecard.ScoreError) as error:
            problems.append(f"{path}: {error}")
    return days, problems


def _load(path: Path) -> scorecard.Day:
    if path.stat().st_size > MOST_BYTES:
        raise scorecard.ScoreError(f"larger than {MOST_BYTES} bytes")
    return scorecard.read(path.read_bytes())


def _files(folder: Path) -> list[Path]:
    """Return the files of all days, oldest first."""
    try:
        return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))
    except OSError:
        return []


def _places(
    picture: state.NodeState | None, groups: Collection[str]
) -> Mapping[str, tuple[str, str]]:
    """Return the namespace and the class of each of these groups, where they are known."""
    if picture is None:
        return {}
    found = {group: ("", name) for name, group in picture.qos_groups.items()}
    for pod in picture.pods:
        inner = (container.group for container in pod.containers)
        named = [one for one in (pod.group, pod.sandbox, *inner) if one and one in groups]
        if named:
            about = (pod.pod.metadata.namespace, pod.effective_qos.value)
            found |= dict.fromkeys(named, about)
    return found
