"""What this agent last knew of settings and pods, on disk: enforced while no server can be asked.

One small file for each kind of news, replaced as a whole. A damaged one is put aside and named, and
counts as nothing known. Nothing here is needed to put a node back.
"""

import logging
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agent.host import files

_logger = logging.getLogger(__name__)
FOLDER: Final = "last-known"
DAMAGED: Final = ".damaged"
MOST_BYTES: Final = 16 * 1024 * 1024
"""News that is longer is not kept, and nothing longer is read."""
_MAGIC: Final = b"koord-last-known-1"


class LastKnown:
    """The news of one node, by name."""

    def __init__(self, folder: Path, wall: Callable[[], float] = time.time) -> None:
        self._folder = folder / FOLDER
        self._wall = wall
        self._written: dict[str, int] = {}
        self._problems: dict[str, str] = {}

    @property
    def problem(self) -> str | None:
        """What could not be read or kept, None when all is well."""
        return "; ".join(self._problems.values()) or None

    def load(self, name: str) -> tuple[bytes, float] | None:
        """Return what was kept last and its age in seconds; None where nothing is known."""
        path = self._folder / name
        try:
            if path.stat().st_size > MOST_BYTES:
                raise ValueError(f"it is larger than {MOST_BYTES} bytes")
            body, age = _opened(path.read_bytes()), self._wall() - path.stat().st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            self._problem(name, f"{path} cannot be read: {error.strerror or error}")
            return None
        except ValueError as error:
            self.quarantine(name, str(error))
            return None
        self._written[name] = zlib.crc32(body)
        return body, max(0.0, age)

    def keep(self, name: str, body: bytes) -> None:
        """Remember news; what is on disk already is not written again."""
        checksum = zlib.crc32(body)
        if self._written.get(name) == checksum:
            return
        path = self._folder / name
        if len(body) > MOST_BYTES - len(_MAGIC) - 16:
            self._lost(name, f"{path} not written: more than {MOST_BYTES} bytes")
            return
        try:
            files.replace(path, sealed(body))
        except OSError as error:
            self._lost(name, f"{path} not written: {error.strerror or error}")
            return
        self._written[name] = checksum
        self._problems.pop(name, None)

    def forget(self, name: str) -> None:
        """Forget news: what it told of is no more."""
        self._written.pop(name, None)
        try:
            (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            self._problem(name, f"{self._folder / name} not removed: {error.strerror or error}")

    def _lost(self, name: str, text: str) -> None:
        """Note that news could not be kept; older ones would be taken for them after a restart."""
        if name in self._written:
            self.forget(name)
        self._problem(name, text)

    def quarantine(self, name: str, reason: str) -> None:
        """Put a file aside that makes no sense; there is at most one of each name."""
        path = self._folder / name
        self._problem(name, f"{path} makes no sense and was put aside: {reason}")
        try:
            path.replace(path.with_name(name + DAMAGED))
        except OSError as error:
            _logger.warning("not put aside path=%s reason=%s", path, error)

    def _problem(self, name: str, text: str) -> None:
        if self._problems.get(name) != text:
            _logger.warning("%s", text)
        self._problems[name] = text


def sealed(body: bytes) -> bytes:
    """Return what a file holds."""
    return b"%s %08x\n%s" % (_MAGIC, zlib.crc32(body), body)


def _opened(data: bytes) -> bytes:
    head, _, body = data.partition(b"\n")
    if head != b"%s %08x" % (_MAGIC, zlib.crc32(body)):
        raise ValueError("it is cut short, changed or of another version")
    return body
