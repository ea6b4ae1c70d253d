"""The audit on disk: rotating files of JSON lines, read from the newest back, page by page."""

import logging
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson

_logger = logging.getLogger(__name__)
_NAME = re.compile(r"audit-(\d{9})\.jsonl")
_TOKEN = re.compile(r"(\d{1,9})\.(\d{1,12})")
_LAST = 999_999_999
FILE_BYTES: Final = 2 * 1024 * 1024
_BEYOND = 8
"""A file that is so many times too large is none that we wrote."""
Event = Mapping[str, Any]


class TokenError(ValueError):
    """A page token that is none, or whose file has been removed since."""


class Page(msgspec.Struct, frozen=True):
    """Events, newest first, and the token of the page before them; empty at the beginning."""

    events: tuple[Event, ...]
    token: str


class AuditLog:
    """Files of one folder; the oldest goes when there would be one too many."""

    def __init__(self, folder: Path, *, most_bytes: int = FILE_BYTES, most_files: int = 10) -> None:
        self.problem: str | None = None
        """Why the last events were lost, None when they were not."""
        self._folder = folder
        self._most_bytes = most_bytes
        self._most_files = most_files
        self._descriptor: int | None = None
        self._number = 0
        self._size = 0

    def close(self) -> None:
        """Close the file that is written to."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def append(self, events: Iterable[Event]) -> None:
        """Write events in one piece; a disk that is full costs them and nothing else."""
        data = b"".join(orjson.dumps(event) + b"\n" for event in events)
        if not data:
            return
        try:
            descriptor = self._open()
            if os.write(descriptor, data) != len(data):
                raise OSError("only a part was written")
        except OSError as error:
            self._lost(error)
            return
        self.problem = None
        self._size += len(data)
        if self._size >= self._most_bytes:
            self.close()

    def page(self, size: int, token: str = "") -> Page:
        """Return up to so many events before a token, or the newest ones."""
        number, offset = self._place(token)
        events: list[Event] = []
        for current in sorted((n for n in self._numbers() if n <= number), reverse=True):
            data = self._read(current)
            if data is None:
                continue
            end = len(data) if current != number or offset is None else offset
            found, begin = _before(data, end, size - len(events))
            events += found
            if len(events) == size and (begin or current > min(self._numbers(), default=0)):
                return Page(tuple(events), f"{current}.{begin}")
        return Page(tuple(events), "")

    def _place(self, token: str) -> tuple[int, int | None]:
        if not token:
            return max(self._numbers(), default=0), None
        match = _TOKEN.fullmatch(token)
        if match is None:
            raise TokenError(f"pageToken {token[:40]!r} is not one that was given out")
        number, offset = int(match[1]), int(match[2])
        if number not in self._numbers():
            raise TokenError("the file that pageToken stands for was removed; begin again")
        return number, offset

    def _open(self) -> int:
        if self._descriptor is not None:
            return self._descriptor
        self._folder.mkdir(parents=True, exist_ok=True)
        numbers = self._fit()
        self._number = max(numbers, default=0)
        if not numbers or self._path(self._number).stat().st_size >= self._most_bytes:
            self._number += 1
        for number in sorted({*numbers, self._number})[: -self._most_files]:
            self._path(number).unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self._path(self._number), flags, 0o640)
        self._size = os.fstat(self._descriptor).st_size
        if self._size and not self._whole():
            # A crash cut the last line off: the next one must not be lost with it.
            self._size += os.write(self._descriptor, b"\n")
        return self._descriptor

    def _fit(self) -> list[int]:
        """Return the files that can be gone on with; others, of no use to anybody, are removed."""
        numbers = self._numbers()
        for number in numbers:
            if self._too_large(number) or number == _LAST:
                _logger.warning("no file of the audit, removed path=%s", self._path(number))
                self._path(number).unlink(missing_ok=True)
        return self._numbers()

    def _too_large(self, number: int) -> bool:
        return self._path(number).stat().st_size > _BEYOND * self._most_bytes

    def _whole(self) -> bool:
        with self._path(self._number).open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _lost(self, error: OSError) -> None:
        # Whatever stands there now is opened again and looked at before the next line.
        self.close()
        if self.problem is None:
            _logger.warning("audit events lost folder=%s error=%s", self._folder, error)
        self.problem = f"{self._folder}: events of the audit are lost: {error}"

    def _numbers(self) -> list[int]:
        try:
            names = [path.name for path in self._folder.iterdir()]
        except OSError:
            return []
        return [int(match[1]) for name in names if (match := _NAME.fullmatch(name))]

    def _path(self, number: int) -> Path:
        return self._folder / f"audit-{number:09}.jsonl"

    def _read(self, number: int) -> bytes | None:
        try:
            return None if self._too_large(number) else self._path(number).read_bytes()
        except OSError:
            # Removed while it was read: as if it had been removed before.
            return None


def _before(data: bytes, end: int, most: int) -> tuple[list[Event], int]:
    """Return up to so many events before a place, newest first, and where they begin."""
    events: list[Event] = []
    end = min(end, len(data))
    while end > 0 and len(events) < most:
        begin = data.rfind(b"\n", 0, end - 1) + 1
        try:
            event = orjson.loads(data[begin:end])
        except orjson.JSONDecodeError:
            event = None
        if isinstance(event, dict):
            events.append(event)
        end = begin
    return events, end
