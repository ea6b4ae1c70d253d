"""NVML as the driver of GPUs, through the optional package nvidia-ml-py."""

import contextlib
import importlib
import re
from collections.abc import Iterator
from typing import Any, Final

from agent.devices import device_inventory, usage

PACKAGE: Final = "pynvml"
EXTRA: Final = "the Python package nvidia-ml-py is not installed; install koord[gpu]"
_BUS = re.compile(r"([0-9a-f]{4,8})(:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
_UNLOADED: Final = frozenset({1, 9, 12, 18})
"""Uninitialized, no driver, no library, versions that do not match."""
_UNSUPPORTED: Final = frozenset({3, 13, 25})
"""Not supported, unknown to this library, unknown to this version of it."""
_NOTHING: Final = frozenset({6, 21})
_TIMEOUT: Final = 10
_LOST: Final = frozenset({15, 16})
"""Off the bus, and of no use before a reset."""
_CRITICAL: Final = 8
_RECOVERY: Final = 230
_ACTIONS: Final = {
    1: "NeedsGpuReset",
    2: "NeedsNodeReboot",
    3: "NeedsPeersDrained",
    4: "NeedsDrainAndReset",
    5: "NeedsFabricRecovered",
    6: "NeedsBusReset",
    7: "NeedsSystemReboot",
}


class Nvml:
    """The driver of the GPUs of this host; every failure is a DriverError."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._handles: dict[int, Any] = {}
        self._events: Any = None

    def start(self) -> None:
        """Begin a session."""
        with self._explained("session"):
            self._library.nvmlInit()
        self._handles = {}
        try:
            with self._explained("events"):
                self._events = self._library.nvmlEventSetCreate()
        except device_inventory.DriverError:
            self.stop()
            raise

    def stop(self) -> None:
        """End the session; one that is broken already ends as well."""
        library = self._library
        with contextlib.suppress(library.NVMLError):
            if self._events is not None:
                library.nvmlEventSetFree(self._events)
        with contextlib.suppress(library.NVMLError):
            library.nvmlShutdown()
        self._handles, self._events = {}, None

    def version(self) -> str:
        """Return the version of the driver."""
        with self._explained("driver version"):
            return _text(self._library.nvmlSystemGetDriverVersion())

    def count(self) -> int:
        """Return how many GPUs the driver knows, lost ones included."""
        with self._explained("number of GPUs"):
            return int(self._library.nvmlDeviceGetCount())

    def facts(self, index: int) -> device_inventory.Gpu:
        """Return what does not change about a GPU."""
        handle = self._handle(index)
        with self._explained(f"GPU {index}"):
            return device_inventory.Gpu(
                identity=_text(self._library.nvmlDeviceGetUUID(handle)),
                minor=int(self._library.nvmlDeviceGetMinorNumber(handle)),
                model=_text(self._library.nvmlDeviceGetName(handle)),
                memory=int(self._library.nvmlDeviceGetMemoryInfo(handle).total),
                bus=bus(_text(self._library.nvmlDeviceGetPciInfo(handle).busId)),
                divided=self._divided(handle),
            )

    def watch(self, index: int) -> None:
        """Ask for the critical events of a GPU."""
        handle = self._handle(index)
        with self._explained(f"events of GPU {index}"):
            self._library.nvmlDeviceRegisterEvents(handle, _CRITICAL, self._events)

    def event(self) -> device_inventory.Event | None:
        """Return an event that has come already, without waiting for one."""
        try:
            found = self._library.nvmlEventSetWait_v2(self._events, 0)
        except self._library.NVMLError as error:
            if error.value == _TIMEOUT:
                return None
            raise _explained("events", error) from error
        identity = None
        with contextlib.suppress(self._library.NVMLError):
            identity = _text(self._library.nvmlDeviceGetUUID(found.device)) or None
        return device_inventory.Event(int(found.eventData), identity)

    def wants(self, index: int) -> str | None:
        """Return what the driver asks for, nothing where all is well, None where it never says."""
        handle = self._handle(index)
        try:
            (value,) = self._library.nvmlDeviceGetFieldValues(handle, [_RECOVERY])
        except self._library.NVMLError as error:
            if error.value in _UNSUPPORTED:
                return None
            raise _explained(f"recovery of GPU {index}", error) from error
        if value.nvmlReturn != 0:
            return None
        action = int(value.value.uiVal)
        return _ACTIONS.get(action, f"NeedsAction{action}") if action else ""

    def use(self, index: int, since: int) -> tuple[device_inventory.Reading, int]:
        """Return what is used of a GPU, and up to which moment its processes were looked at."""
        handle, library = self._handle(index), self._library
        with self._explained(f"use of GPU {index}"):
            identity = _text(library.nvmlDeviceGetUUID(handle))
        memory = self._asked(lambda: int(self._memory(handle).used))
        core = self._asked(lambda: float(library.nvmlDeviceGetUtilizationRates(handle).gpu))
        running = self._asked(lambda: list(library.nvmlDeviceGetComputeRunningProcesses(handle)))
        samples = self._asked(lambda: self._samples(handle, since)) if running else []
        told = None if samples is None else usage.shares(samples, since)
        processes = [
            device_inventory.Process(
                int(one.pid),
                int(one.usedGpuMemory or 0),
                None if told is None else told.get(int(one.pid), 0.0),
            )
            for one in running or ()
        ]
        latest = max((moment for _, moment, share in samples or () if share <= 100), default=since)
        reading = device_inventory.Reading(identity, memory, core, tuple(processes))
        return reading, max(since, latest)

    def _samples(self, handle: Any, since: int) -> list[tuple[int, int, float]]:
        try:
            found = self._library.nvmlDeviceGetProcessUtilization(handle, since)
        except self._library.NVMLError as error:
            if error.value in _NOTHING:
                return []
            raise
        return [(int(one.pid), int(one.timeStamp), float(one.smUtil)) for one in found]

    def _memory(self, handle: Any) -> Any:
        """Return the figures of memory, those that leave out what the driver keeps if it can."""
        try:
            newer = getattr(self._library, "nvmlMemory_v2", None)
            return self._library.nvmlDeviceGetMemoryInfo(handle, newer)
        except self._library.NVMLError as error:
            if error.value not in _UNSUPPORTED:
                raise
        return self._library.nvmlDeviceGetMemoryInfo(handle)

    def _divided(self, handle: Any) -> bool:
        try:
            current, _ = self._library.nvmlDeviceGetMigMode(handle)
        except self._library.NVMLError as error:
            if error.value in _UNSUPPORTED:
                return False
            raise
        return bool(current)

    def _asked(self, ask: Any) -> Any:
        """Return an answer, None where this GPU does not tell it."""
        try:
            return ask()
        except self._library.NVMLError as error:
            if error.value in _LOST | _UNLOADED:
                raise _explained("use", error) from error
            return None

    def _handle(self, index: int) -> Any:
        handle = self._handles.get(index)
        if handle is None:
            with self._explained(f"GPU {index}"):
                handle = self._library.nvmlDeviceGetHandleByIndex(index)
            self._handles[index] = handle
        return handle

    @contextlib.contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._library.NVMLError as error:
            raise _explained(what, error) from error


def load() -> Nvml:
    """Return the driver; the package is loaded at the first call and only then."""
    try:
        return Nvml(importlib.import_module(PACKAGE))
    except ImportError as error:
        raise device_inventory.DriverError(EXTRA, device_inventory.Failure.UNLOADED) from error


def bus(text: str) -> str:
    """Return an address as the kernel writes it: four digits of domain, small letters."""
    text = text.strip().lower()
    found = _BUS.fullmatch(text)
    return f"{int(found[1], 16):04x}{found[2]}" if found else text


def _explained(what: str, error: Any) -> device_inventory.DriverError:
    value = int(error.value)
    kind = device_inventory.Failure.OTHER
    for codes, meaning in (
        (_UNLOADED, device_inventory.Failure.UNLOADED),
        (_LOST, device_inventory.Failure.LOST),
        (_UNSUPPORTED, device_inventory.Failure.UNSUPPORTED),
    ):
        if value in codes:
            kind = meaning
    return device_inventory.DriverError(f"{what}: {error} (NVML error {value})", kind)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
