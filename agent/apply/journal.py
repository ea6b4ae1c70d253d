"""What every file held before we wrote it, safe on disk before the first write."""

import dataclasses
import json
import logging
import os
from pathlib import Path
from typing import Any

from agent import edits

_logger = logging.getLogger(__name__)
VERSION = 1


class JournalError(Exception):
    """The journal cannot be kept; nothing may be written to the host then."""


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One property of one group and the text that stood there before us."""

    role: edits.Role
    group: str
    previous: str

    @property
    def key(self) -> tuple[edits.Role, str]:
        """What the entry is about."""
        return self.role, self.group


class Journal:
    """The entries of one boot, kept in one small file that is replaced as a whole."""

    def __init__(self, folder: Path, boot_id: str) -> None:
        self._folder = folder
        self._path = folder / "journal.json"
        self._boot_id = boot_id
        self._entries: dict[tuple[edits.Role, str], Entry] = {}
        self._stored: dict[tuple[edits.Role, str], Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that is to be put back one day."""
        return tuple(self._entries.values())

    def get(self, role: edits.Role, group: str) -> Entry | None:
        """Return the entry of one property of one group."""
        return self._entries.get((role, group))

    def load(self) -> None:
        """Read what an earlier run left; values of another boot mean nothing in this one."""
        try:
            raw = json.loads(self._path.read_bytes())
            version, boot_id = raw["version"], raw["bootId"]
            entries = [_entry(item) for item in raw["entries"]] if version == VERSION else []
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise JournalError(
                f"{self._path} cannot be read ({type(error).__name__}: {error}); "
                "look at it, then remove it"
            ) from error
        if version != VERSION:
            raise JournalError(
                f"{self._path} has version {version}, this agent knows {VERSION}; "
                "let the agent that wrote it stop cleanly before this one starts"
            )
        self._stored = {entry.key: entry for entry in entries}
        if boot_id == self._boot_id:
            self._entries = dict(self._stored)
        else:
            _logger.info("journal of another boot dropped path=%s", self._path)

    def put(self, entry: Entry) -> None:
        """Remember an entry; it is safe only after the next commit."""
        self._entries[entry.key] = entry

    def drop(self, role: edits.Role, group: str) -> None:
        """Forget an entry, because its file is as it was or is gone."""
        self._entries.pop((role, group), None)

    def commit(self) -> bool:
        """Make the entries durable if they changed, all at once; return whether they had."""
        if self._entries == self._stored:
            return False
        body = {
            "version": VERSION,
            "bootId": self._boot_id,
            "entries": [dataclasses.asdict(entry) for entry in self._entries.values()],
        }
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._replace(json.dumps(body).encode())
        except OSError as error:
            raise JournalError(
                f"{self._path} cannot be written ({error}); make its folder writable, "
                "nothing is changed on this host until then"
            ) from error
        self._stored = dict(self._entries)
        return True

    def _replace(self, data: bytes) -> None:
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


def _entry(raw: dict[str, Any]) -> Entry:
    return Entry(edits.Role(raw["role"]), str(raw["group"]), str(raw["previous"]))
