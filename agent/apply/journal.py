"""What every file held before we wrote it and what we put there, safe on disk before the write.

One file, a line per commit, each with a checksum: a commit is one append and one sync, whatever
the number of its entries. A line that a crash cut off was never acknowledged and is dropped; a
damaged line before others is an error, since what followed it cannot be trusted. The file is
replaced as a whole when it has grown far beyond its entries, and after every failed append.

Older and newer agents read it as well: what was added since is said beside the entries, where an
older agent does not look, and an entry that this one cannot use is kept for the one that can. A
file of a newer agent that makes no sense is put aside under another name, and blocks no agent.
"""

import fcntl
import logging
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import orjson

from agent.model import edits

_logger = logging.getLogger(__name__)
VERSION = 2
NAME = "journal.jsonl"
LOCK = "lock"
SMALL = 64 * 1024
"""Bytes that are never worth a replacement."""
GROWTH = 4
MOST_BYTES = 64 * 1024 * 1024
"""A larger journal is none that an agent has written, and is not read."""
Key = tuple[edits.Role, str]
_ROLES = frozenset(role.value for role in edits.Role)


class JournalError(Exception):
    """The journal cannot be kept; nothing may be written to the host then."""


class Entry(msgspec.Struct, frozen=True):
    """One property of one group: the text before us, and every text that we may have put there.

    Before a write both the old and the new text of ours stand here, since a crash leaves either.
    """

    role: edits.Role
    group: str
    previous: str
    ours: tuple[str, ...] = ()
    basis: str = ""
    """What spec and status of the pod said that the kubelet had written, where that agreed with
    the file; as soon as they say something else, that is what has to be put back."""
    foreign: bool = False
    """Whether an unknown writer wrote the text that is to be put back, while it was ours."""

    @property
    def key(self) -> Key:
        """What the entry is about."""
        return self.role, self.group

    def covers(self, other: "Entry") -> bool:
        """Tell whether this entry says all that another one needs."""
        mine = (self.previous, self.basis, self.foreign)
        return mine == (other.previous, other.basis, other.foreign) and set(other.ours) <= set(
            self.ours
        )


class Journal:
    """The entries of one boot."""

    def __init__(self, folder: Path, boot_id: str) -> None:
        self._folder = folder
        self._path = folder / NAME
        self._boot_id = boot_id
        self._entries: dict[Key, Entry] = {}
        self._stored: dict[Key, Entry] = {}
        self._touched: set[Key] = set()
        self._unusable: dict[tuple[str, str], list[Any]] = {}
        self.aside: Path | None = None
        """Where a journal of a newer agent lies that this one cannot read."""
        self._appendable = False
        self._size = 0
        self._fresh_size = 0
        self._lock: int | None = None

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that is to be put back one day."""
        return tuple(self._entries.values())

    def get(self, role: edits.Role, group: str) -> Entry | None:
        """Return the entry of one property of one group."""
        return self._entries.get((role, group))

    def hold(self) -> None:
        """Make sure that no other process on this host writes by this journal, until `close`."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._folder / LOCK, flags, 0o600)
        except OSError as error:
            raise JournalError(
                f"the journal cannot be kept in {self._folder} ({error}); make that folder "
                "writable, nothing is changed on this host until then"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise JournalError(
                f"{self._folder} is in use by an agent on this host; stop it first"
            ) from error
        self._lock = descriptor

    def close(self) -> None:
        """Let another process write by this journal."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def load(self) -> None:
        """Read what an earlier run left; values of another boot mean nothing in this one."""
        boot_id = self._read(self._path)
        if boot_id is None:
            self._stored.clear()
        elif boot_id == self._boot_id:
            self._entries = dict(self._stored)
        else:
            _logger.info("journal of another boot dropped path=%s", self._path)
            self._touched = set(self._stored)
            self._unusable.clear()
        self._take_back()

    def _read(self, path: Path) -> str | None:
        """Replay a file; return the boot it is of, None where there is nothing to go on from."""
        try:
            if path.stat().st_size > MOST_BYTES:
                raise OSError(f"it is larger than {MOST_BYTES} bytes")
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise JournalError(_unreadable(path, str(error))) from error
        lines = _lines(path, data)
        version: object = None
        try:
            version, boot_id = lines[0]["version"], lines[0]["bootId"]
            for line in lines[1:]:
                self._replay(line)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            if isinstance(version, int) and version > VERSION:
                self._put_aside(version)
                return None
            problem = f"{type(error).__name__}: {error}"
            raise JournalError(_unreadable(path, problem)) from error
        return str(boot_id)

    def _take_back(self) -> None:
        """Take in a journal of ours that an older agent has put aside.

        What it says of the time before us is older than what that agent found, which was ours.
        """
        aside = self._path.with_name(f"{NAME}.version-{VERSION}")
        if not aside.exists():
            return
        before = Journal(self._folder, self._boot_id)
        if before._read(aside) == self._boot_id:
            for entry in before._stored.values():
                later = self._entries.get(entry.key)
                ours = (*later.ours, later.previous) if later else ()
                self.put(msgspec.structs.replace(entry, ours=together((*entry.ours, *ours))))
            self.commit()
        aside.unlink(missing_ok=True)

    def put(self, entry: Entry) -> None:
        """Remember an entry; it is safe only after the next commit."""
        self._entries[entry.key] = entry
        self._touched.add(entry.key)

    def drop(self, role: edits.Role, group: str) -> None:
        """Forget an entry, because its file is as it was or is gone."""
        if self._entries.pop((role, group), None) is not None:
            self._touched.add((role, group))

    def commit(self) -> bool:
        """Make the entries durable where that matters, all at once; return whether it did."""
        puts, drops = self._changes()
        if not puts and not drops:
            self._touched.clear()
            return False
        line = sealed({**_written(puts), "drop": [[*key] for key in drops]})
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if self._appendable and self._size + len(line) <= self._most:
                self._append(line)
            else:
                self._replace()
        except OSError as error:
            # A part of the line may stand there now: never append behind it.
            self._appendable = False
            raise JournalError(
                f"{self._path} cannot be written ({error}); make its folder writable and free "
                "some space, nothing is changed on this host until then"
            ) from error
        for entry in puts:
            self._stored[entry.key] = entry
        for key in drops:
            self._stored.pop(key, None)
        self._touched.clear()
        return True

    @property
    def _most(self) -> int:
        return max(SMALL, GROWTH * self._fresh_size)

    def _changes(self) -> tuple[list[Entry], list[Key]]:
        puts, drops = [], []
        for key in self._touched:
            entry, stored = self._entries.get(key), self._stored.get(key)
            if entry is None:
                drops += [key] if stored is not None else []
            elif stored is None or not stored.covers(entry):
                puts.append(entry)
        return puts, drops

    def _replay(self, line: Any) -> None:
        for raw in line["put"]:
            if raw[0] in _ROLES:
                entry = _entry(raw)
                self._stored[entry.key] = entry
            else:
                self._unusable[_text(raw[0]), _text(raw[1])] = raw
        for role, group, facts in line.get("facts", ()):
            found = self._stored.get((role, group))
            if found is not None:
                self._stored[found.key] = _with_facts(found, facts)
        for role, group in line["drop"]:
            self._unusable.pop((role, group), None)
            self._stored.pop((role, group), None)

    def _put_aside(self, version: int) -> None:
        """Begin afresh beside the journal of a newer agent, which stays for that agent to undo."""
        self.aside = self._path.with_name(f"{NAME}.version-{version}")
        try:
            self._path.replace(self.aside)
        except OSError as error:
            raise JournalError(_unreadable(self._path, str(error))) from error
        self._stored.clear()
        self._unusable.clear()
        _logger.error(
            "the journal of a newer agent cannot be read and was put aside path=%s version=%d; "
            "that agent takes it back when it starts again",
            self.aside,
            version,
        )

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            if os.write(descriptor, line) != len(line):
                raise OSError("only a part of it was written")
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        self._size += len(line)

    def _replace(self) -> None:
        data = sealed({"version": VERSION, "bootId": self._boot_id}) + sealed(
            {**_written(self._entries.values(), self._unusable.values()), "drop": []}
        )
        temporary = self._path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
        # The new name must survive a crash of the host as well.
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._size = self._fresh_size = len(data)
        self._stored = dict(self._entries)
        self._appendable = True


def sealed(body: dict[str, Any]) -> bytes:
    """Return one line of the journal with its checksum."""
    text = orjson.dumps(body)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def unsealed(line: bytes) -> bytes | None:
    """Return the text of a line without its newline, None where its checksum is wrong."""
    checksum, _, text = line.partition(b" ")
    return text if checksum == b"%08x" % zlib.crc32(text) else None


def _lines(path: Path, data: bytes) -> list[Any]:
    """Return the good lines; the last one may be cut off or half written."""
    *whole, rest = data.split(b"\n")
    found: list[Any] = []
    for number, line in enumerate(whole, 1):
        text = unsealed(line)
        if text is None:
            if number == len(whole) and not rest and number > 1:
                rest = line
                break
            raise JournalError(_unreadable(path, f"line {number} is damaged"))
        found.append(orjson.loads(text))
    if rest:
        _logger.warning("an unfinished line of the journal dropped path=%s", path)
    return found


def _unreadable(path: Path, problem: str) -> str:
    return f"{path} cannot be read ({problem}); look at it, then remove it"


def _written(entries: Iterable[Entry], others: Iterable[list[Any]] = ()) -> dict[str, Any]:
    """Return entries as they are written; agents from before there were facts pass over those."""
    known = tuple(entries)
    facts = [
        [one.role.value, one.group, {"basis": one.basis, "foreign": one.foreign}]
        for one in known
        if one.basis or one.foreign
    ]
    put = [[one.role.value, one.group, one.previous, *one.ours] for one in known]
    return {"put": [*put, *others], **({"facts": facts} if facts else {})}


def _entry(raw: list[Any]) -> Entry:
    role, group, previous, *ours = map(_text, raw)
    return Entry(edits.Role(role), group, previous, tuple(ours))


def _with_facts(entry: Entry, facts: dict[str, Any]) -> Entry:
    basis, foreign = _text(facts.get("basis", "")), facts.get("foreign") is True
    return msgspec.structs.replace(entry, basis=basis, foreign=foreign)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def together(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts once each, in their order."""
    return tuple(dict.fromkeys(texts))
