"""The GPUs of one node through their driver: what there is, how it is, what is used.

A GPU that had a critical error stays unhealthy until something says that it was repaired: the
driver was loaded anew, the device came back after it was lost, or the driver no longer asks for a
recovery that it had asked for. A restart of the agent forgets errors that left no other trace.
"""

import logging
from collections.abc import Callable
from typing import Final, Protocol

from agent.devices import device_inventory, pci
from domain import wording

_logger = logging.getLogger(__name__)
SOURCE: Final = device_inventory.GPU
VENDOR: Final = "0x10de"
DISPLAYS: Final = ("0x0300", "0x0302")
"""Classes of PCI devices: with and without a screen."""
OWNERS: Final = ("", "nvidia")
"""Who has the devices that the driver may tell; what a virtual machine has is not the node's."""
MOST: Final = 256
MOST_EVENTS: Final = 256
PATIENCE_SECONDS: Final = 60.0
"""How long a driver may not answer before what is not known is no longer called healthy."""
LOST_REASON: Final = "Lost"
APPLICATION_ERRORS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""Xids that say something about a program and nothing about the device."""


class Driver(Protocol):
    """What is asked of a driver; every failure is a DriverError, nothing waits."""

    def start(self) -> None:
        """Begin a session."""

    def stop(self) -> None:
        """End the session; one that is broken already ends as well."""

    def version(self) -> str:
        """Return the version of the driver."""

    def count(self) -> int:
        """Return how many GPUs the driver knows, lost ones included."""

    def facts(self, index: int) -> device_inventory.Gpu:
        """Return what does not change about a GPU."""

    def watch(self, index: int) -> None:
        """Ask for the critical events of a GPU."""

    def event(self) -> device_inventory.Event | None:
        """Return an event that has come already, without waiting for one."""

    def wants(self, index: int) -> str | None:
        """Return what the driver asks for, nothing where all is well, None where it never says."""

    def use(self, index: int, since: int) -> tuple[device_inventory.Reading, int]:
        """Return what is used of a GPU, and up to which moment its processes were looked at."""


def plugged_in(folder: str) -> tuple[str, ...]:
    """Return the PCI addresses of all GPUs in a folder, whether or not a driver knows them."""
    return tuple(
        one.bus
        for one in pci.functions(folder)
        if one.vendor == VENDOR
        and one.kind.startswith(DISPLAYS)
        and pci.driver(f"{folder}/{one.bus}") in OWNERS
    )


class Gpus:
    """The GPUs of this host; the driver is loaded only where there is one for it."""

    def __init__(self, sys: str, load: Callable[[], Driver]) -> None:
        self._folder = pci.root(sys)
        self._load = load
        self._driver: Driver | None = None
        self._known: dict[str, device_inventory.Gpu] = {}
        """Every GPU that the driver ever told, by identity."""
        self._indices: dict[int, str] = {}
        self._ill: dict[str, device_inventory.Verdict] = {}
        self._asked_for: set[str] = set()
        """GPUs that the driver wants to be recovered."""
        self._watched: set[int] = set()
        self._since: dict[int, int] = {}
        self._unloaded = False
        self._silent_since: float | None = None
        """Since when something that is plugged in has not been told."""
        self._said = ""
        self._version = ""

    def discover(self, at: float) -> device_inventory.Found:
        """Return the GPUs with their health; a driver that does not answer is named."""
        present = plugged_in(self._folder)
        if not present and self._driver is None:
            self._forget(present)
            return device_inventory.Found()
        try:
            self._begin()
            problems = self._look()
        except device_inventory.DriverError as error:
            self._end(error)
            return self._unanswered(present, at, str(error))
        gpus = sorted(self._known.values(), key=lambda one: one.minor)
        missing = len(present) > len(gpus)
        if missing:
            plugged = wording.count(len(present), "GPU is", "GPUs are")
            problems.append(f"{plugged} plugged in, the driver tells {len(gpus)}")
        return device_inventory.Found(
            tuple(map(self._told, gpus)),
            device_inventory.gpu_labels(gpus, self._version),
            problems=tuple(problems[:8]),
            # One that was lost before it told who it is may be in the object.
            complete=not missing,
            silent=self._silent(at, missing),
        )

    def use(self) -> tuple[device_inventory.Reading, ...]:
        """Return what is used of every GPU that answers; errors that came meanwhile are noted."""
        if self._driver is None:
            return ()
        found = []
        try:
            self._listen(self._driver)
            for index, identity in self._indices.items():
                try:
                    reading, latest = self._driver.use(index, self._since.get(index, 0))
                except device_inventory.DriverError as error:
                    self._failed(identity, error)
                    continue
                self._since[index] = latest
                found.append(reading)
        except device_inventory.DriverError as error:
            self._end(error)
        return tuple(found)

    def close(self) -> None:
        """End the session."""
        if self._driver is not None:
            self._driver.stop()
            self._driver = None

    def _silent(self, at: float, missing: bool) -> bool:
        """Tell whether something has been missing for too long."""
        if not missing:
            self._silent_since = None
            return False
        if self._silent_since is None:
            self._silent_since = at
        return at - self._silent_since >= PATIENCE_SECONDS

    def _begin(self) -> None:
        if self._driver is not None:
            return
        driver = self._load()
        driver.start()
        self._driver, self._indices, self._watched, self._since = driver, {}, set(), {}
        self._version = driver.version()
        if self._unloaded:
            # What was wrong before was wrong with devices that have been set up anew since.
            self._ill.clear()
            self._asked_for.clear()
        self._unloaded = False
        self._said = ""
        _logger.info("driver answers version=%s gpus=%d", self._version, driver.count())

    def _end(self, error: device_inventory.DriverError) -> None:
        self._unloaded |= bool(self._known) and error.kind is device_inventory.Failure.UNLOADED
        if self._said != str(error):
            self._said = str(error)
            _logger.warning("driver does not answer error=%s", error)
        self.close()

    def _look(self) -> list[str]:
        """Ask for every GPU; return what could not be told."""
        assert self._driver is not None
        problems: list[str] = []
        for index in range(min(self._driver.count(), MOST)):
            try:
                gpu = self._driver.facts(index)
            except device_inventory.DriverError as error:
                self._failed(self._indices.get(index), error)
                problems.append(str(error))
                continue
            self._returned(gpu)
            self._known[gpu.identity] = gpu
            self._indices[index] = gpu.identity
            self._watch(self._driver, index, gpu, problems)
            self._ask(self._driver, index, gpu)
            if gpu.divided:
                problems.append(f"GPU {gpu.minor} is divided (MIG); it is reported as a whole")
        self._listen(self._driver)
        self._forget(plugged_in(self._folder))
        return problems

    def _watch(
        self, driver: Driver, index: int, gpu: device_inventory.Gpu, problems: list[str]
    ) -> None:
        if index not in self._watched:
            try:
                driver.watch(index)
            except device_inventory.DriverError as error:
                if error.kind is device_inventory.Failure.UNLOADED:
                    raise
                if error.kind is not device_inventory.Failure.UNSUPPORTED:
                    problems.append(str(error))
                    return
                said = "the driver reports no errors of this device"
                self._fell_ill(gpu.identity, device_inventory.UNWATCHED, said)
            self._watched.add(index)

    def _ask(self, driver: Driver, index: int, gpu: device_inventory.Gpu) -> None:
        """Follow what the driver says about recovery, where it says anything."""
        try:
            wanted = driver.wants(index)
        except device_inventory.DriverError as error:
            self._failed(gpu.identity, error)
            return
        if wanted:
            self._asked_for.add(gpu.identity)
            self._fell_ill(gpu.identity, wanted, "the driver asks for a recovery of the device")
        elif wanted is not None and gpu.identity in self._asked_for:
            self._asked_for.discard(gpu.identity)
            self._recovered(gpu.identity, "the driver asks for no recovery any more")

    def _listen(self, driver: Driver) -> None:
        for _ in range(MOST_EVENTS):
            event = driver.event()
            if event is None:
                return
            if event.xid in APPLICATION_ERRORS:
                continue
            text = f"the driver reported the critical error Xid {event.xid}"
            for identity in tuple(self._known) if event.identity is None else (event.identity,):
                self._fell_ill(identity, f"Xid{event.xid}", text)

    def _failed(self, identity: str | None, error: device_inventory.DriverError) -> None:
        if error.kind is device_inventory.Failure.UNLOADED:
            raise error
        if error.kind is device_inventory.Failure.LOST and identity is not None:
            self._fell_ill(identity, LOST_REASON, str(error))
            # A driver that comes back has forgotten what it was asked to report.
            self._watched -= {n for n, known in self._indices.items() if known == identity}

    def _returned(self, gpu: device_inventory.Gpu) -> None:
        verdict = self._ill.get(gpu.identity)
        if verdict is not None and verdict.reason == LOST_REASON:
            self._recovered(gpu.identity, "the device answers again")

    def _fell_ill(self, identity: str, reason: str, message: str) -> None:
        lost = reason == LOST_REASON
        before = self._ill.get(identity)
        if before is None or (lost and before.reason != reason):
            self._ill[identity] = device_inventory.Verdict(False, reason, message)
            _logger.warning("GPU is unhealthy id=%s reason=%s", identity, reason)

    def _recovered(self, identity: str, because: str) -> None:
        if self._ill.pop(identity, None) is not None:
            _logger.info("GPU is healthy again id=%s because=%s", identity, because)

    def _told(
        self, gpu: device_inventory.Gpu, verdict: device_inventory.Verdict | None = None
    ) -> device_inventory.Device:
        verdict = verdict or self._ill.get(gpu.identity)
        return device_inventory.of_gpu(gpu, pci.place(self._folder, gpu.bus), verdict)

    def _forget(self, present: tuple[str, ...]) -> None:
        """Forget GPUs that are no longer plugged in."""
        for identity, gpu in tuple(self._known.items()):
            if gpu.bus not in present:
                del self._known[identity]
                self._ill.pop(identity, None)
                self._asked_for.discard(identity)

    def _unanswered(self, present: tuple[str, ...], at: float, why: str) -> device_inventory.Found:
        """Return what was known before; after a while it is no longer called healthy."""
        self._forget(present)
        silent = self._silent(at, True)
        verdict = device_inventory.Verdict(False, device_inventory.SILENT, why) if silent else None
        gpus = sorted(self._known.values(), key=lambda one: one.minor)
        found = tuple(self._told(gpu, self._ill.get(gpu.identity) or verdict) for gpu in gpus)
        labels = device_inventory.gpu_labels(gpus, self._version)
        return device_inventory.Found(found, labels, problems=(why,), complete=False, silent=silent)
