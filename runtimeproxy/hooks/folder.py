"""The folder in which hook servers register, as `/etc/runtime/hookserver.d`."""

import logging
import stat
from pathlib import Path
from typing import Final

from api.koordinator import runtime_hooks
from process.runtime import clock as clocks
from runtimeproxy.hooks import registrations

_MOST_BYTES: Final = 64 * 1024
_MOST_FILES: Final = 64
_Seen = tuple[int, int, int]
_logger = logging.getLogger(__name__)


class Folder:
    """Keeps what is registered; a file that becomes unreadable counts as it was before."""

    def __init__(self, path: Path, clock: clocks.Clock, seconds: float) -> None:
        self.problems: dict[str, str] = {}
        """Why files register nothing new, by their names."""
        self._path, self._clock, self._seconds = path, clock, seconds
        self._seen: dict[str, _Seen] = {}
        self._known: dict[str, registrations.Registration] = {}

    @property
    def known(self) -> dict[str, registrations.Registration]:
        """Hook servers by the names of their files."""
        return dict(self._known)

    def server(self, stage: runtime_hooks.Stage) -> registrations.Registration | None:
        """Return the hook server of a stage: of several the one whose file is first by name."""
        for name in sorted(self._known):
            if stage in self._known[name].stages:
                return self._known[name]
        return None

    async def run(self) -> None:
        """Look again and again."""
        while True:
            self.look()
            await self._clock.sleep(self._seconds)

    def look(self) -> None:
        """Read what is new or has changed, and forget what is gone."""
        try:
            self._path.mkdir(mode=0o755, parents=True, exist_ok=True)
            found = sorted(one for one in self._path.iterdir() if one.name.endswith("json"))
        except OSError as error:
            self._tell(str(self._path), f"{error.strerror}")
            return
        self.problems.pop(str(self._path), None)
        names = {one.name for one in found[:_MOST_FILES]}
        for gone in [name for name in (*self._seen, *self.problems) if name not in names]:
            self._seen.pop(gone, None)
            self.problems.pop(gone, None)
            if self._known.pop(gone, None) is not None:
                _logger.info("hook server is no longer registered file=%s", gone)
        for one in found[:_MOST_FILES]:
            self._read(one)

    def _read(self, path: Path) -> None:
        try:
            status = path.stat()
            seen = status.st_ino, status.st_mtime_ns, status.st_size
            if self._seen.get(path.name) == seen:
                return
            if not stat.S_ISREG(status.st_mode):
                # To open a pipe would wait for its writer.
                raise registrations.RegistrationError("it is no file")
            with path.open("rb") as file:
                read = registrations.read(file.read(_MOST_BYTES))
        except (OSError, registrations.RegistrationError) as error:
            self._tell(path.name, str(error))
            return
        self._seen[path.name] = seen
        self.problems.pop(path.name, None)
        self._known[path.name] = read
        stages = ",".join(sorted(read.stages))
        _logger.info("hook server registered file=%s stages=%s", path.name, stages)

    def _tell(self, name: str, problem: str) -> None:
        if self.problems.get(name) != problem:
            self.problems[name] = problem
            _logger.warning("registration is not read file=%s reason=%s", name, problem)
