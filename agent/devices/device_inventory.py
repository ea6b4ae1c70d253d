"""What a node has of accelerators and adapters, from whatever source. Pure."""

import enum
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from api import names
from api.wire import quantity

GPU: Final = "gpu"
RDMA: Final = "rdma"
WHOLE: Final = "100"
HEALTHY: Final = "DeviceHealthy"
UNWATCHED: Final = "DeviceHealthCheckNotSupported"
SILENT: Final = "DriverNotAnswering"
LONGEST_LABEL: Final = 63
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_NO_LABEL = re.compile(r"[^A-Za-z0-9_.-]+")
_ENDS = "_.-"


class Failure(enum.Enum):
    """What a refusal of a driver means."""

    UNLOADED = "unloaded"
    """The driver, or what speaks to it, is not there; a session with it is worth nothing."""
    LOST = "lost"
    """One device does not answer any more, others may."""
    UNSUPPORTED = "unsupported"
    """This device never tells that."""
    OTHER = "other"
    """A failure of another kind."""


class DriverError(Exception):
    """What a driver refuses to tell; the text is the driver's own."""

    def __init__(self, text: str, kind: Failure = Failure.OTHER) -> None:
        super().__init__(text)
        self.kind = kind


class Verdict(msgspec.Struct, frozen=True):
    """What is said of the health of a device."""

    healthy: bool
    reason: str
    message: str


class Place(msgspec.Struct, frozen=True):
    """Where a device is plugged in."""

    node: int
    """NUMA node."""
    pcie: str
    """The PCIe root, as `pci0000:3a`."""
    bus: str
    """Address as domain:bus:device.function."""
    socket: int = -1
    """Processor socket; -1 when unknown."""


class Device(msgspec.Struct, frozen=True):
    """One device, ready to be told."""

    kind: str
    identity: str
    minor: int | None
    """Its index on the node; None where nothing says it, so that one has to be given."""
    resources: Mapping[str, str]
    healthy: bool = True
    verdict: Verdict | None = None
    """What is reported of its health beside the bare fact."""
    place: Place | None = None
    functions: tuple[str, ...] = ()
    """Addresses of its virtual functions."""


class Found(msgspec.Struct, frozen=True):
    """What one source found."""

    devices: tuple[Device, ...] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    problems: tuple[str, ...] = ()
    """What could not be told, and why."""
    complete: bool = True
    """Whether a device that is not listed does not exist; else nothing is known of it."""
    silent: bool = False
    """Whether what is not known has been so for too long to be called healthy."""


class Gpu(msgspec.Struct, frozen=True):
    """What a driver tells about one GPU."""

    identity: str
    minor: int
    model: str
    memory: int
    """Bytes in all."""
    bus: str
    divided: bool = False
    """Whether it is divided into instances (MIG)."""


class Process(msgspec.Struct, frozen=True):
    """What one process uses of a GPU."""

    pid: int
    memory: int
    core: float | None = None
    """Percent of the time; None where the driver does not tell it."""


class Reading(msgspec.Struct, frozen=True):
    """What is used of a GPU at one moment."""

    identity: str
    memory: int | None
    core: float | None
    """Percent of the time; None where the driver does not tell it."""
    processes: tuple[Process, ...] = ()


class Event(msgspec.Struct, frozen=True):
    """A critical error that a driver reports."""

    xid: int
    identity: str | None
    """The GPU it is about; None where the driver does not say."""


class Inventory(msgspec.Struct, frozen=True):
    """Everything that one look found."""

    devices: tuple[Device, ...] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    unknown: Mapping[str, bool] = msgspec.field(default_factory=dict)
    """Kinds of which more may exist than is listed, and whether that lasts too long."""
    problems: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What could not be told, by source."""


def inventory(sources: Mapping[str, Found]) -> Inventory:
    """Put together what several sources found; a source is called after the kind it finds."""
    devices: list[Device] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    unknown: dict[str, bool] = {}
    problems: dict[str, str] = {}
    for name, found in sources.items():
        kind = RDMA if name == RDMA else GPU
        devices += found.devices
        labels.update(found.labels)
        annotations.update(found.annotations)
        if not found.complete:
            unknown[kind] = unknown.get(kind, False) or found.silent
        if found.problems:
            problems[name] = "; ".join(found.problems)
    return Inventory(tuple(devices), labels, annotations, unknown, problems)


def of_gpu(gpu: Gpu, place: Place | None, verdict: Verdict | None) -> Device:
    """Return a GPU as it is reported; a verdict is given only of what is not healthy."""
    resources = {
        names.GPU_CORE: WHOLE,
        names.GPU_MEMORY: quantity.format_binary(gpu.memory),
        names.GPU_MEMORY_RATIO: WHOLE,
    }
    healthy = verdict is None or verdict.healthy
    return Device(GPU, gpu.identity, gpu.minor, resources, healthy, verdict, place)


def gpu_labels(gpus: Iterable[Gpu], version: str) -> dict[str, str]:
    """Return what is said of all GPUs of a driver; a mixture of models has no name."""
    models = {gpu.model for gpu in gpus}
    if not models:
        return {}
    found = {names.LABEL_GPU_VENDOR: "nvidia"}
    if len(models) == 1:
        found[names.LABEL_GPU_MODEL] = label(models.pop().removeprefix("NVIDIA "))
    found[names.LABEL_GPU_DRIVER] = label(version)
    return {name: value for name, value in found.items() if value}


def label(text: str) -> str:
    """Return a text as the value of a label, which takes few characters and not many."""
    return _NO_LABEL.sub("-", text.strip())[:LONGEST_LABEL].strip(_ENDS)


def reason(code: str, otherwise: str = "Unknown") -> str:
    """Return a code as the reason of a condition, which is one word that begins with a letter."""
    if not code.strip():
        return otherwise
    if _REASON.fullmatch(code):
        return code[:1024]
    word = re.sub(r"[^A-Za-z0-9_]+", "_", code).strip("_")
    return f"Code_{word}"[:1024] if word else otherwise


def numbered(devices: Iterable[Device], before: Mapping[str, int]) -> tuple[Device, ...]:
    """Give every device of one kind an index of its own, the same as before where that is free.

    A device that names its index itself has it, the first of several by address; the others get
    the lowest that is left, in the order of their addresses.
    """
    ordered = sorted(devices, key=lambda one: one.identity)
    given: dict[str, int] = {}
    taken: set[int] = set()
    for wanted in ({one.identity: one.minor for one in ordered}, before):
        for one in ordered:
            minor = wanted.get(one.identity)
            if one.identity not in given and minor is not None and _free(minor, taken):
                given[one.identity] = minor
                taken.add(minor)
    for one in ordered:
        if one.identity not in given:
            given[one.identity] = next(n for n in range(len(ordered) + 1) if n not in taken)
            taken.add(given[one.identity])
    return tuple(msgspec.structs.replace(one, minor=given[one.identity]) for one in ordered)


def _free(minor: int, taken: Collection[int]) -> bool:
    return minor >= 0 and minor not in taken
