"""Accelerators that a helper of their maker describes in files, one list of records in each."""

import os
import stat
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from agent import devices, devices_partitions, files
from api import names
from api.wire import quantity

SOURCE: Final = "xpu"
LIMIT: Final = 1024 * 1024
MOST_FILES: Final = 64
MOST_RECORDS: Final = 1024
_PREFIX: Final = "koordinator.sh/"
_SHORT: Final = {names.GPU_CORE.removeprefix(_PREFIX), names.GPU_MEMORY.removeprefix(_PREFIX)}
_UNFINISHED: Final = (".tmp", ".swp", ".part", "~")


class Link(msgspec.Struct, frozen=True, rename="camel"):
    """A fast link to other devices."""

    peer_minor: str = ""
    type: str = ""


class Topology(msgspec.Struct, frozen=True):
    """Where a record says that its device is plugged in."""

    p2p_links: list[Link] | None = msgspec.field(default=None, name="p2pLinks")
    must_honor: bool = msgspec.field(default=False, name="mustHonorPartition")
    socket: str = msgspec.field(default="", name="socketID")
    node: str = msgspec.field(default="", name="nodeID")
    pcie: str = msgspec.field(default="", name="pcieID")
    bus: str = msgspec.field(default="", name="busID")


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """How a record says that its device is."""

    healthy: bool = True
    err_code: str = ""
    err_message: str = ""


class Record(msgspec.Struct, frozen=True):
    """One device as a file describes it."""

    vendor: str = ""
    model: str = ""
    uuid: str = ""
    minor: str = ""
    resources: dict[str, str | int | float] = {}
    topology: Topology | None = None
    status: Status | None = None


class Folder:
    """The files of one folder; what a spoilt one said before counts until it is whole again."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._good: dict[str, Sequence[Record]] = {}
        self._bad: dict[str, str] = {}

    def discover(self) -> devices.Found:
        """Read every file once; one that cannot be read is named and hides no other."""
        try:
            names_ = self._names()
        except files.ReadingError as error:
            return devices.Found(problems=(str(error),), complete=False)
        problems, spoilt = [], {}
        self._good = {name: kept for name, kept in self._good.items() if name in names_}
        for name in names_:
            try:
                self._good[name] = _records(f"{self._folder}/{name}")
            except files.VanishedError:
                self._good.pop(name, None)
            except files.ReadingError as error:
                spoilt[name] = str(error)
                # Whoever writes is in the middle of it as often as not; the next look tells.
                if name in self._bad or name not in self._good:
                    problems.append(str(error))
        self._bad = spoilt
        records = [one for name in names_ for one in self._good.get(name, ())]
        found = found_in(records[:MOST_RECORDS])
        if len(records) > MOST_RECORDS:
            problems.append(f"{self._folder}: more than {MOST_RECORDS} records, the rest is unread")
        known = all(name in self._good for name in spoilt)
        return devices.Found(
            found.devices,
            found.labels,
            found.annotations,
            (*problems, *found.problems)[:8],
            complete=known,
        )

    def _names(self) -> list[str]:
        """List the regular files; a folder that nobody made holds none."""
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


def _records(path: str) -> Sequence[Record]:
    data = files.read(path, LIMIT)
    try:
        return msgspec.json.decode(data, type=list[Record])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise files.ReadingError(f"{path}: no list of devices: {error}") from error


def found_in(records: Sequence[Record]) -> devices.Found:
    """Return what records say; one without an identity or an index is named and left out."""
    found: list[devices.Device] = []
    links: list[devices_partitions.Link] = []
    problems: list[str] = []
    for record in records:
        minor = _number(record.minor)
        if not record.uuid or minor is None:
            problems.append(f"record {record.uuid or '?'}: minor {record.minor!r} is no index")
            continue
        found.append(_device(record, minor, problems))
        written = (record.topology.p2p_links if record.topology else None) or ()
        links += [devices_partitions.Link(minor, one.peer_minor, one.type) for one in written]
    partitions = devices_partitions.text(links)
    annotations = {names.ANNOTATION_GPU_PARTITIONS: partitions} if partitions else {}
    return devices.Found(tuple(found), _labels(records), annotations, tuple(problems))


def _labels(records: Sequence[Record]) -> Mapping[str, str]:
    if not records:
        return {}
    first = records[0]
    labels = {
        names.LABEL_GPU_VENDOR: devices.label(first.vendor),
        names.LABEL_GPU_MODEL: devices.label(first.model),
    }
    if first.topology is not None and first.topology.p2p_links is not None:
        strict = first.topology.must_honor
        labels[names.LABEL_GPU_PARTITION_POLICY] = "Honor" if strict else "Prefer"
    return {name: value for name, value in labels.items() if value}


def _device(record: Record, minor: int, problems: list[str]) -> devices.Device:
    resources = {names.GPU_MEMORY_RATIO: devices.WHOLE}
    for name, value in record.resources.items():
        try:
            resources[_PREFIX + name if name in _SHORT else name] = quantity.canonical(str(value))
        except ValueError:
            problems.append(f"record {record.uuid}: resources.{name} {value!r} is no quantity")
    status = record.status
    return devices.Device(
        devices.GPU,
        record.uuid,
        minor,
        resources,
        healthy=status is None or status.healthy,
        verdict=None if status is None else _verdict(status),
        place=_place(record.topology),
    )


def _verdict(status: Status) -> devices.Verdict:
    if status.healthy:
        return devices.Verdict(True, devices.HEALTHY, "device is healthy")
    said = status.err_message or "device is unhealthy"
    return devices.Verdict(False, devices.reason(status.err_code), said[:1024])


def _place(topology: Topology | None) -> devices.Place | None:
    if topology is None:
        return None
    node = -1 if not topology.node.strip() else _signed(topology.node, 0)
    return devices.Place(node, topology.pcie, topology.bus, _signed(topology.socket, -1))


def _signed(text: str, otherwise: int) -> int:
    text = text.strip()
    digits = text.removeprefix("-")
    return int(text) if _number(digits) is not None else otherwise


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None
