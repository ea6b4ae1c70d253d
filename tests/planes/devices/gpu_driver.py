"""A driver of GPUs that does what a test tells it."""

import dataclasses

from agent.devices import device_inventory

GIB = 1 << 30
UNLOADED, LOST, UNSUPPORTED = (
    device_inventory.Failure.UNLOADED,
    device_inventory.Failure.LOST,
    device_inventory.Failure.UNSUPPORTED,
)


def gpu(number, model="NVIDIA A100-SXM4-80GB", **changes):
    """A GPU on a bus of its own."""
    bus = f"0000:{0x3B + number:02x}:00.0"
    given = {"memory": 80 * GIB, "bus": bus, **changes}
    return device_inventory.Gpu(f"GPU-{number}", number, model, **given)


@dataclasses.dataclass
class Scripted:
    """A driver with these GPUs; what is missing from it is refused as a real one does."""

    gpus: list = dataclasses.field(default_factory=list)
    events: list = dataclasses.field(default_factory=list)
    actions: dict = dataclasses.field(default_factory=dict)
    readings: dict = dataclasses.field(default_factory=dict)
    lost: set = dataclasses.field(default_factory=set)
    unwatchable: set = dataclasses.field(default_factory=set)
    failure: device_inventory.DriverError | None = None
    broken: device_inventory.DriverError | None = None
    refusals: list = dataclasses.field(default_factory=list)
    sessions: int = 0
    open: bool = False
    watched: list = dataclasses.field(default_factory=list)
    asked_since: list = dataclasses.field(default_factory=list)

    def start(self):
        if self.failure is not None:
            raise self.failure
        self.sessions, self.open, self.watched = self.sessions + 1, True, []

    def stop(self):
        self.open = False

    def version(self):
        return "550.54.15"

    def count(self):
        if self.failure is not None:
            raise self.failure
        return len(self.gpus)

    def _answers(self, index):
        assert self.open
        if self.gpus[index].identity in self.lost:
            raise device_inventory.DriverError(f"GPU {index}: GPU is lost", LOST)

    def facts(self, index):
        self._answers(index)
        return self.gpus[index]

    def watch(self, index):
        self._answers(index)
        if self.refusals:
            raise self.refusals.pop()
        if self.gpus[index].identity in self.unwatchable:
            raise device_inventory.DriverError("Not Supported", UNSUPPORTED)
        self.watched.append(index)

    def event(self):
        if self.broken is not None:
            raise self.broken
        return self.events.pop(0) if self.events else None

    def wants(self, index):
        self._answers(index)
        return self.actions.get(self.gpus[index].identity)

    def use(self, index, since):
        self._answers(index)
        self.asked_since.append(since)
        identity = self.gpus[index].identity
        return self.readings.get(identity, device_inventory.Reading(identity, 0, 0.0)), since + 1
