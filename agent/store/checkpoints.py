"""What the agent remembers, on disk: samples in one file, learned peaks in one file per model.

Every file is replaced as a whole; one that cannot be read is named, removed and begun afresh.
Nothing here is needed to put the node back: a full disk costs history, never a tick.
"""

import json
import logging
import math
import re
import struct
import threading
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from agent.host import files
from agent.store import peaks, time_series
from domain.usage import histogram

_logger = logging.getLogger(__name__)
_MAGIC: Final = b"koord-samples-1\n"
_HEAD: Final = struct.Struct("<II")
_LENGTH: Final = struct.Struct("<I")
MOST_BYTES: Final = 64 * 1024 * 1024
"""A larger file of samples is not read."""
MOST_MODEL_BYTES: Final = 64 * 1024
MOST_PER_STEP: Final = 12
MODEL_SECONDS: Final = 600.0
"""How often one model is written at most."""
_SAFE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


class CheckpointError(Exception):
    """A file that makes no sense; the text names it and says why."""


class Moment(msgspec.Struct, frozen=True):
    """When something was kept: the wall clock, and the clock of one boot that only grows."""

    wall: float
    monotonic: float
    boot_id: str = ""

    def since(self, then: "Moment") -> float | None:
        """Return the seconds since another moment, None where the clocks contradict each other."""
        same_boot = bool(self.boot_id) and self.boot_id == then.boot_id
        age = self.monotonic - then.monotonic if same_boot else self.wall - then.wall
        return age if age >= 0 else None


class Packer:
    """Puts samples into the bytes of a file, one series after another."""

    def __init__(self, at: Moment) -> None:
        self._packing = zlib.compressobj(1)
        self._parts: list[bytes] = []
        self._put(msgspec.structs.asdict(at))

    def add(self, one: time_series.Kept) -> None:
        """Put one series in."""
        self._put([list(one.key), one.keep_seconds, len(one.times)])
        for column in (one.times, one.values):
            self._parts.append(self._packing.compress(memoryview(column)))

    def done(self) -> bytes:
        """Return the file."""
        body = b"".join((*self._parts, self._packing.flush()))
        return _MAGIC + _HEAD.pack(len(body), zlib.crc32(body)) + body

    def _put(self, value: Any) -> None:
        text = json.dumps(value).encode()
        self._parts.append(self._packing.compress(_LENGTH.pack(len(text)) + text))


def pack(samples: Iterable[time_series.Kept], at: Moment) -> bytes:
    """Put samples into the bytes of a file."""
    packer = Packer(at)
    for one in samples:
        packer.add(one)
    return packer.done()


def unpack(data: bytes) -> tuple[Moment, list[time_series.Kept]]:
    """Read the bytes of a file of samples."""
    try:
        plain = _plain(data)
        head, start = _value(plain, 0)
        at = Moment(float(head["wall"]), float(head["monotonic"]), str(head["boot_id"]))
        return at, list(_series(plain, start))
    except (struct.error, zlib.error, ValueError, LookupError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{type(error).__name__}: {error}") from error


def _plain(data: bytes) -> memoryview:
    start = len(_MAGIC) + _HEAD.size
    if not data.startswith(_MAGIC) or len(data) < start:
        raise ValueError("not a file of samples of this version")
    length, checksum = _HEAD.unpack_from(data, len(_MAGIC))
    body = data[start:]
    if len(body) != length or zlib.crc32(body) != checksum:
        raise ValueError("cut short or changed")
    unpacking = zlib.decompressobj()
    plain = unpacking.decompress(body, MOST_BYTES)
    if not unpacking.eof:
        raise ValueError(f"more than {MOST_BYTES} bytes of samples")
    return memoryview(plain)


def _value(plain: memoryview, start: int) -> tuple[Any, int]:
    (length,) = _LENGTH.unpack_from(plain, start)
    end = start + _LENGTH.size + length
    return json.loads(bytes(plain[start + _LENGTH.size : end])), end


def _series(plain: memoryview, start: int) -> Iterator[time_series.Kept]:
    while start < len(plain):
        (key, keep_seconds, count), start = _value(plain, start)
        columns = []
        for _ in ("times", "values"):
            column = array("d")
            column.frombytes(plain[start : start + 8 * count])
            if len(column) != count:
                raise ValueError("fewer samples than announced")
            columns.append(column)
            start += 8 * count
        yield time_series.Kept(tuple(map(str, key)), float(keep_seconds), *columns)


class SampleFile:
    """The samples of all series, in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = threading.Lock()
        self.problem = ""

    def write(self, data: bytes) -> bool:
        """Replace the file; return whether that worked."""
        try:
            with self._writing:
                files.replace(self._path, data)
        except OSError as error:
            self._failed(f"{self._path} not written: {error.strerror or error}")
            return False
        self.problem = ""
        return True

    def load(self, samples: time_series.Histories, now: Moment) -> int:
        """Take in what an earlier run kept; return the number of series."""
        try:
            if self._path.stat().st_size > MOST_BYTES:
                raise CheckpointError(f"larger than {MOST_BYTES} bytes")
            then, kept = unpack(self._path.read_bytes())
        except FileNotFoundError:
            return 0
        except (OSError, CheckpointError) as error:
            self._failed(f"{self._path} not read, history begins afresh: {error}")
            _remove(self._path)
            return 0
        age = now.since(then)
        if age is None:
            self._failed(f"{self._path} is from the future, history begins afresh")
            return 0
        later = now.monotonic - age - then.monotonic
        found = samples.restore(kept, later, now.monotonic)
        _logger.info("history taken back series=%d age_seconds=%.0f", found, age)
        return found

    def _failed(self, problem: str) -> None:
        if problem != self.problem:
            _logger.warning("%s", problem)
        self.problem = problem


class ModelFiles:
    """One file per model in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: dict[str, float] = {}
        self._writing = threading.Lock()
        self.problem = ""

    def load(self, known: Collection[str], rules: peaks.Rules) -> dict[str, peaks.Model]:
        """Read the models of what is still there; files of anything else are removed."""
        found: dict[str, peaks.Model] = {}
        for path in self._files():
            if path.name not in known:
                _remove(path)
                continue
            try:
                found[path.name] = peaks.read(path.name, _json(path), rules)
            except (OSError, ValueError, RecursionError) as error:
                self._failed(f"{path} not read, the model begins afresh: {error}")
                _remove(path)
        return found

    def due(self, models: peaks.Models, now: float) -> dict[str, Mapping[str, Any]]:
        """Return the models that are to be written next, as their files hold them."""
        never = -math.inf
        oldest = sorted((u for u, _ in models.items()), key=lambda u: self._written.get(u, never))
        ripe = [uid for uid in oldest if now - self._written.get(uid, never) >= MODEL_SECONDS]
        return bodies(models, ripe[:MOST_PER_STEP])

    def write(self, wanted: Mapping[str, Mapping[str, Any]], now: float) -> None:
        """Replace the files of these models."""
        for uid, body in wanted.items():
            # Counted even where it fails: a full disk must not be asked for the same file for ever.
            self._written[uid] = now
            try:
                with self._writing:
                    files.replace(self._folder / uid, json.dumps(body).encode())
            except OSError as error:
                self._failed(f"{self._folder / uid} not written: {error.strerror or error}")
                return
        self.problem = ""

    def remove(self, uids: Iterable[str]) -> None:
        """Remove the files of models that are no more."""
        for uid in uids:
            self._written.pop(uid, None)
            if _SAFE.fullmatch(uid):
                _remove(self._folder / uid)

    def _files(self) -> list[Path]:
        try:
            listed = sorted(path for path in self._folder.iterdir() if path.is_file())
        except OSError:
            return []
        return listed

    def _failed(self, problem: str) -> None:
        if problem != self.problem:
            _logger.warning("%s", problem)
        self.problem = problem


def bodies(models: peaks.Models, uids: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Return models as their files hold them; a name that is no name of a file has none."""
    return {
        uid: model.written(uid)
        for uid in uids
        if _SAFE.fullmatch(uid) and (model := models.get(uid)) is not None
    }


def _json(path: Path) -> Any:
    if path.stat().st_size > MOST_MODEL_BYTES:
        raise histogram.HistogramError(f"larger than {MOST_MODEL_BYTES} bytes")
    return json.loads(path.read_bytes())


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _logger.warning("not removed path=%s reason=%s", path, error)
