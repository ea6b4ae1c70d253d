"""Looks at all hardware types, writes what was found, sleeps, and looks again."""

import logging
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from agent.device_daemon import looks, node_labels, output
from agent.device_daemon import settings as daemon_settings
from agent.device_daemon.hardware import findings
from agent.host import files
from api.wire import durations
from process.runtime import clock as clocks
from process.runtime import metrics

_logger = logging.getLogger(__name__)
STANDARD_OUTPUT: Final = "-"
MODE: Final = 0o644
SOON_SECONDS: Final = 5.0
LONGEST_PAUSE: Final = 60.0


class Daemon:
    """One device daemon. Its settings are read once, at the start."""

    def __init__(
        self,
        settings: daemon_settings.Settings,
        managers: Sequence[looks.Manager],
        host: findings.Host,
        clock: clocks.Clock,
        figures: metrics.Registry,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.looked = False
        self.problems: dict[str, str] = {}
        """What could not be found out or written, by hardware type and place."""
        self.node: node_labels.NodeLabels | None = None
        """Where the Node is labelled; None where it is not."""
        self._settings = settings
        self._managers = managers
        self._host = host
        self._clock = clock
        self._chance = chance
        self._labels: dict[str, str] = {}
        self._annotation = ""
        self._devices = figures.table(
            "koord_device_daemon_devices", "Devices that are plugged in, by kind.", ["kind"]
        )
        self._failing = figures.table(
            "koord_device_daemon_problems", "1 for what could not be told or written.", ["source"]
        )

    async def run(self) -> None:
        """Look for ever, a pause apart; an API server that does not answer is asked again."""
        while True:
            await self.step()
            end = self._clock.monotonic() + self._settings.interval
            failures = 0
            while self.node is not None and self.node.problem is not None:
                pause = min(LONGEST_PAUSE, SOON_SECONDS * 2.0 ** min(failures, 10))
                pause *= 0.5 + 0.5 * self._chance()
                if self._clock.monotonic() + pause >= end:
                    break
                await self._clock.sleep(pause)
                failures += 1
                await self._label()
            await self._clock.sleep(end - self._clock.monotonic())

    async def step(self) -> None:
        """Look once and write what was found."""
        found = {one.name: await one.look(self._host) for one in self._managers}
        self.problems = looks.problems(found)
        told = list(found.values())
        self._labels, self._annotation = output.labels(told), output.annotation(told)
        now = None if self._settings.no_timestamp else self._clock.now()
        records = [record for one in told for record in one.records]
        moment = None if now is None else durations.moment(now)
        self._write_file("output file", self._file, output.device_file(records, moment))
        seconds = None if now is None else int(now)
        text = output.labels_file(self._labels, seconds)
        self._write_file("labels file", self._settings.labels_file, text)
        await self._label()
        self.looked = True
        self._show(told)

    def remove_files(self) -> None:
        """Remove the files where the settings ask for it."""
        if not self._settings.remove_on_stop or self._settings.oneshot:
            return
        for path in (self._file, self._settings.labels_file):
            if path is not None:
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    _logger.warning("file was not removed path=%s error=%s", path, error)

    @property
    def unwritten(self) -> str | None:
        """Why something that was found stands nowhere; None where everything was written."""
        places = ("output file", "labels file", "node")
        return "; ".join(self.problems[name] for name in places if name in self.problems) or None

    @property
    def _file(self) -> Path | None:
        chosen = self._settings.prints_output_file
        return Path(chosen) if chosen not in ("", STANDARD_OUTPUT) else None

    def _write_file(self, name: str, path: Path | None, text: str) -> None:
        if path is None:
            if name == "output file" and self._settings.prints_output_file == STANDARD_OUTPUT:
                sys.stdout.write(text)
                sys.stdout.flush()
            return
        try:
            files.replace(path, text.encode(), MODE)
        except OSError as error:
            self.problems[name] = f"{path} cannot be written: {error.strerror or error}"

    async def _label(self) -> None:
        if self.node is None:
            return
        await self.node.write(self._labels, self._annotation)
        self.problems.pop("node", None)
        if self.node.problem is not None:
            self.problems["node"] = self.node.problem

    def _show(self, told: Sequence[findings.Findings]) -> None:
        kinds: dict[tuple[str, ...], float] = {}
        for one in told:
            for card in one.cards:
                kinds[card.kind,] = kinds.get((card.kind,), 0.0) + 1
        self._devices.replace(kinds)
        self._failing.replace({(name,): 1.0 for name in self.problems})
        for name, reason in self.problems.items():
            _logger.warning("problem source=%s reason=%s", name, reason)
        _logger.info(
            "looked devices=%s", ",".join(f"{k}:{int(n)}" for (k,), n in sorted(kinds.items()))
        )
