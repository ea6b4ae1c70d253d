"""Looks at the devices of this node: which there are, how they are, and who uses them."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec

from agent.devices import device_inventory, latest_findings, usage, usage_figures
from agent.host import files, hanging_reads
from agent.observe import collectors
from process.runtime import metrics

NAME: Final = "devices"
SECONDS: Final = 1.0
INVENTORY_SECONDS: Final = 10.0
MOST_OWNERS: Final = 16_384
HANGS: Final = "a driver does not answer"


class GpuSource(Protocol):
    """Where GPUs and their use come from."""

    def discover(self, at: float) -> device_inventory.Found:
        """Return the GPUs with their health."""

    def use(self) -> tuple[device_inventory.Reading, ...]:
        """Return what is used of every GPU."""

    def close(self) -> None:
        """Let go of the driver."""


class Sources(msgspec.Struct, frozen=True):
    """Where to look; None where that kind is switched off."""

    gpus: GpuSource | None = None
    xpus: Callable[[], device_inventory.Found] | None = None
    rdma: Callable[[], device_inventory.Found] | None = None


class Look(msgspec.Struct, frozen=True):
    """What one look found."""

    inventory: device_inventory.Inventory
    readings: tuple[device_inventory.Reading, ...] = ()


class Discovery:
    """Looks at every source, at the inventory less often than at the use."""

    def __init__(self, sources: Sources, seconds: float = INVENTORY_SECONDS) -> None:
        self._sources = sources
        self._seconds = seconds
        self._due: float | None = None
        self._inventory = device_inventory.Inventory()
        self._counting = False

    def look(self, at: float) -> Look:
        """Look once."""
        if self._due is None or at >= self._due:
            self._due = at + self._seconds
            self._inventory = device_inventory.inventory(self._found(at))
        gpus = self._sources.gpus
        readings = gpus.use() if gpus is not None and self._counting else ()
        return Look(self._inventory, readings)

    def close(self) -> None:
        """Let go of everything."""
        if self._sources.gpus is not None:
            self._sources.gpus.close()

    def _found(self, at: float) -> dict[str, device_inventory.Found]:
        """Ask every source; accelerators that files describe take the place of a driver's."""
        found: dict[str, device_inventory.Found] = {}
        described = (
            self._sources.xpus() if self._sources.xpus is not None else device_inventory.Found()
        )
        if described != device_inventory.Found():
            found["xpu"] = described
        self._counting = not described.devices
        if self._sources.gpus is not None:
            if self._counting:
                found[device_inventory.GPU] = self._sources.gpus.discover(at)
            else:
                # An open session would keep others from the devices for nothing.
                self._sources.gpus.close()
        if self._sources.rdma is not None:
            found[device_inventory.RDMA] = self._sources.rdma()
        return found


class Collector:
    """Hands on what was found: figures to the samples, the inventory to its reporter."""

    def __init__(
        self,
        discovery: Discovery,
        latest: latest_findings.Latest,
        proc: Path,
        figures: metrics.Registry,
    ) -> None:
        self._discovery = discovery
        self._apart = hanging_reads.Apart(discovery.look, "the look at devices")
        self._latest = latest
        self._proc = str(proc)
        self._owners: dict[int, usage.Owner | None] = {}
        self._told = figures.table(
            "koord_agent_devices", "Devices by type and health.", ["type", "health"]
        )
        self._missing = figures.table(
            "koord_agent_device_problems", "1 for what has something to complain.", ["source"]
        )

    @property
    def name(self) -> str:
        """What its failures are named by."""
        return NAME

    @property
    def seconds(self) -> float:
        """Time between two looks."""
        return SECONDS

    def collect(self, sight: collectors.Sight) -> None:
        """Take what the last look found, and let the next one begin."""
        try:
            look = self._apart.turn(sight.at)
        except files.ReadingError:
            # Without the time, which would be published anew again and again.
            self._latest.problems = {latest_findings.LOOK: HANGS}
            raise
        if look is None:
            return
        self.take(look, sight)

    def take(self, look: Look, sight: collectors.Sight) -> None:
        """Hand on what one look found; what could not be told is raised in the end."""
        self._latest.inventory = look.inventory
        self._latest.gpus = usage.counted(look.inventory)
        problems = dict(look.inventory.problems)
        hidden = [
            one.identity for one in look.readings if one.core and one.memory and not one.processes
        ]
        if hidden:
            problems["use"] = (
                f"{hidden[0]} is used by processes that cannot be seen from here, which takes "
                "hostPID; only the use of the whole node is reported"
            )
        self._sample(look.readings, sight)
        if self._latest.clashes:
            problems["object"] = "; ".join(self._latest.clashes[:3])
        self._latest.problems = problems
        self._show(look.inventory, problems)
        if problems:
            said = "; ".join(f"{source}: {reason}" for source, reason in problems.items())
            raise files.ReadingError(said)

    def close(self) -> None:
        """Let go of everything; a driver that hangs is left to the end of the process."""
        if self._apart.close():
            self._discovery.close()

    def _sample(
        self, readings: tuple[device_inventory.Reading, ...], sight: collectors.Sight
    ) -> None:
        owners = self._owned(readings, sight) if readings else {}
        for key, amount in usage.amounts(readings, owners).items():
            keep = sight.keep_seconds if key[0] == "node" else sight.pod_keep_seconds
            for figure, value in (
                (usage_figures.CORE, amount.core),
                (usage_figures.MEMORY, amount.memory),
            ):
                if value is not None:
                    sight.samples.add((*key, figure), sight.at, value, keep)

    def _owned(
        self, readings: Iterable[device_inventory.Reading], sight: collectors.Sight
    ) -> dict[int, usage.Owner]:
        """Return whose processes they are; each is looked up once as long as it uses a GPU."""
        pids = {process.pid for one in readings for process in one.processes}
        known = {pid: owner for pid, owner in self._owners.items() if pid in pids}
        containers = _containers(sight)
        for pid in sorted(pids)[:MOST_OWNERS]:
            owner = known.get(pid)
            if owner is None or owner not in containers.values():
                known[pid] = self._looked_up(pid, containers)
        self._owners = known
        return {pid: owner for pid, owner in known.items() if owner is not None}

    def _looked_up(self, pid: int, containers: Mapping[str, usage.Owner]) -> usage.Owner | None:
        try:
            text = files.read(f"{self._proc}/{pid}/cgroup").decode("utf-8", "replace")
        except files.ReadingError:
            return None
        for line in text.splitlines():
            owner = usage.owner_of(line.rpartition(":")[2], containers)
            if owner is not None:
                return owner
        return None

    def _show(self, inventory: device_inventory.Inventory, problems: Mapping[str, str]) -> None:
        rows: dict[tuple[str, ...], float] = {}
        for one in inventory.devices:
            key = (one.kind, "healthy" if one.healthy else "unhealthy")
            rows[key] = rows.get(key, 0.0) + 1
        self._told.replace(rows)
        self._missing.replace({(source,): 1.0 for source in problems})


def _containers(sight: collectors.Sight) -> dict[str, usage.Owner]:
    """Return the containers of all pods by the last part of their groups, which has their id."""
    return {
        one.group.rpartition("/")[2]: usage.Owner(pod.pod.metadata.uid, one.name)
        for pod in sight.pods
        for one in pod.containers
        if one.group and one.running
    }
