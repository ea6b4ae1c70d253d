"""Accelerators that a helper of their maker describes in files, one list of records in each."""

import os
import stat
from collections.abc import Sequence
from typing import Final

import msgspec

from agent.devices import device_inventory, vendor_records
from agent.host import files

SOURCE: Final = "xpu"
LIMIT: Final = 1024 * 1024
MOST_FILES: Final = 64
MOST_RECORDS: Final = 1024
_UNFINISHED: Final = (".tmp", ".swp", ".part", "~")


class Folder:
    """The files of one folder; what a spoilt one said before counts until it is whole again."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._good: dict[str, Sequence[vendor_records.Record]] = {}
        self._bad: dict[str, str] = {}

    def discover(self) -> device_inventory.Found:
        """Read every file once; one that cannot be read is named and hides no other."""
        try:
            names_ = self._names()
        except files.ReadingError as error:
            return device_inventory.Found(problems=(str(error),), complete=False)
        problems, spoilt = [], {}
        self._good = {name: kept for name, kept in self._good.items() if name in names_}
        for name in names_:
            try:
                self._good[name] = _records(f"{self._folder}/{name}")
            except files.VanishedError:
                self._good.pop(name, None)
            except files.ReadingError as error:
                spoilt[name] = str(error)
                # Its writer is in the middle of it as often as not; the next look decides.
                if name in self._bad or name not in self._good:
                    problems.append(str(error))
        self._bad = spoilt
        records = [one for name in names_ for one in self._good.get(name, ())]
        found = vendor_records.found_in(records[:MOST_RECORDS])
        if len(records) > MOST_RECORDS:
            problems.append(f"{self._folder}: more than {MOST_RECORDS} records, the rest is unread")
        known = all(name in self._good for name in spoilt)
        return device_inventory.Found(
            found.devices,
            found.labels,
            found.annotations,
            (*problems, *found.problems)[:8],
            complete=known,
        )

    def _names(self) -> list[str]:
        """List the regular files; a folder that does not exist holds none."""
        found = []
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or entry.name.endswith(_UNFINISHED):
                        continue
                    if stat.S_ISREG(entry.stat().st_mode):
                        found.append(entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise files.ReadingError(f"{self._folder}: {error.strerror or error}") from error
        return sorted(found)[:MOST_FILES]


def _records(path: str) -> Sequence[vendor_records.Record]:
    data = files.read(path, LIMIT)
    try:
        return msgspec.json.decode(data, type=list[vendor_records.Record])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise files.ReadingError(f"{path}: no list of devices: {error}") from error
