"""Device: what accelerators and adapters a node has, and who uses them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from api import names
from api.koordinator import resource_names
from api.kubernetes import meta
from api.wire import base

GPU: Final = "gpu"
RDMA: Final = "rdma"
FPGA: Final = "fpga"
WHOLE: Final = "100"


class Topology(base.Model):
    """Where a device is plugged in."""

    socket_id: base.Int32
    """CPU socket; -1 when unknown."""
    node_id: base.Int32
    """NUMA node."""
    pcie_id: base.Text = Field(alias="pcieID")
    """PCIe switch."""
    bus_id: base.Text = ""
    """Address as domain:bus:device.function."""


class VirtualFunction(base.Model):
    """One virtual function of a network adapter."""

    minor: base.Int32
    """Index; -1 when only the address identifies it."""
    bus_id: base.Text = ""
    """Address as domain:bus:device.function."""


class VirtualFunctionGroup(base.Model):
    """Virtual functions with equal properties."""

    labels: dict[str, base.Text] = Field(default={})
    """What selectors look at."""
    vfs: tuple[VirtualFunction, ...] = ()
    """The functions."""


class DeviceInfo(base.Model):
    """One device of a node."""

    type: base.Text = ""
    """gpu, rdma, fpga or another type."""
    id: base.Text = ""
    """UUID of a GPU, or identifier of the adapter."""
    minor: base.Int32 | None = None
    """Index on the node, from 0."""
    module_id: base.Int32 | None = None
    """Physical slot."""
    health: base.Bool
    """Unhealthy devices are neither allocated nor counted."""
    labels: dict[str, base.Text] = Field(default={})
    """What selectors look at."""
    resources: base.ResourceList = Field(default={})
    """What the device offers; percentages count 100 for the whole device."""
    topology: Topology | None = None
    """Where it is plugged in."""
    vf_groups: tuple[VirtualFunctionGroup, ...] = ()
    """Its virtual functions."""
    conditions: tuple[meta.Condition, ...] = ()
    """Observed facts, for instance Healthy."""


class WrittenDevice(DeviceInfo):
    """One device of a node, in either spelling."""

    device_type: base.Text = ""
    """Same as type."""
    device_model: base.Text = ""
    """Model, for instance nvidia-a100."""
    uuid: base.Text = ""
    """Same as id."""
    total_memory: base.Quantity | None = None
    """Memory of the device."""


class Spec(base.Model):
    """The devices of a node."""

    devices: tuple[WrittenDevice, ...] = ()
    """The devices."""


class Entry(base.Model):
    """Which devices one pod has."""

    namespace: base.Text = ""
    """Namespace of the pod."""
    name: base.Text = ""
    """Name of the pod."""
    uuid: base.Text = ""
    """UID of the pod."""
    minors: tuple[base.Int32, ...] = ()
    """Indices of the devices."""


class Allocation(base.Model):
    """Who has devices of one type."""

    type: base.Text = ""
    """The type."""
    entries: tuple[Entry, ...] = ()
    """The pods."""


class DeviceIdentity(base.Model):
    """Which device is meant."""

    device_type: base.Text = ""
    """Type of the device."""
    uuid: base.Text = ""
    """Identifier of the device."""
    minor: base.Int32 | None = None
    """Index on the node."""


class PodIdentity(base.Model):
    """Which pod is meant."""

    namespace: base.Text = ""
    """Namespace of the pod."""
    name: base.Text = ""
    """Name of the pod."""


class Portion(base.Model):
    """How much of a device one container has."""

    pod: PodIdentity = PodIdentity()
    """The pod."""
    container: base.Text = ""
    """The container."""
    allocated: base.Text = ""
    """Share of the device, for instance 50%."""


class DeviceAllocation(base.Model):
    """Who shares one device."""

    device: DeviceIdentity = DeviceIdentity()
    """The device."""
    allocations: tuple[Portion, ...] = ()
    """The shares."""
    omitted: base.Int32 = 0
    """Shares that are left out because there are too many of them."""


class Status(base.Model):
    """Who uses the devices of a node."""

    allocations: tuple[Allocation, ...] = ()
    """Pods by type of device."""
    device_allocations: tuple[DeviceAllocation, ...] = ()
    """Shares by device."""
    conditions: Annotated[tuple[meta.LooseCondition, ...], Field(max_length=64)] = ()
    """Observed facts."""


class Device(meta.Object):
    """The devices of one node; carries the node's name."""

    spec: Spec = Spec()
    """What there is."""
    status: Status = Status()
    """Who uses it."""


def read_device(raw: Mapping[str, Any]) -> Device:
    """Read a Device in either spelling."""
    return review_device(raw).value


def review_device(raw: Mapping[str, Any]) -> base.Read[Device]:
    """Read a Device in either spelling and report where the spellings disagree."""
    warnings: list[str] = []
    spec, status = base.section(raw, "spec"), base.section(raw, "status")
    known: dict[str, tuple[str, int]] = {}
    listed = spec.get("devices")
    # What is no list stays as it is, for validation to refuse it as a whole: the characters of a
    # long text would be refused one by one.
    if isinstance(listed, Sequence) and not isinstance(listed, str | bytes):
        spec["devices"] = _devices(listed, known, warnings)
    if status.get("deviceAllocations") and not status.get("allocations"):
        status["allocations"] = _entries(status["deviceAllocations"], known)
    folded = {**raw, "spec": spec, "status": status}
    return base.Read(base.read(Device, folded), tuple(warnings))


def _devices(
    listed: Sequence[Any], known: dict[str, tuple[str, int]], warnings: list[str]
) -> list[Any]:
    """Return devices in one spelling; `known` gets type and minor number by id."""
    minors: dict[str, int] = {}
    devices = []
    for index, item in enumerate(listed):
        if not isinstance(item, Mapping):
            devices.append(item)
            continue
        device = _folded(item, f"spec.devices[{index}]", warnings)
        kind = device.get("type", "")
        minor = device.setdefault("minor", minors.get(kind, 0))
        if isinstance(minor, int):
            minors[kind] = max(minors.get(kind, 0), minor + 1)
            known[device.get("id", "")] = (kind, minor)
        devices.append(device)
    return devices


def _folded(item: Mapping[str, Any], path: str, warnings: list[str]) -> dict[str, Any]:
    device = {name: value for name, value in item.items() if value is not None}
    for shorthand, canonical in (("deviceType", "type"), ("uuid", "id")):
        value = device.get(shorthand)
        if value and device.setdefault(canonical, value) != value:
            warnings.append(
                f"{path}.{shorthand}: differs from {path}.{canonical}, which is used instead"
            )
    resources = device.get("resources")
    if not resources:
        device["resources"] = _resources(device)
    elif isinstance(resources, Mapping):
        device["resources"] = resource_names.current(resources)
    model = device.get("deviceModel")
    if model and device.get("type") == GPU:
        device["labels"] = {names.LABEL_GPU_MODEL: model, **base.section(device, "labels")}
    return device


def _resources(device: Mapping[str, Any]) -> dict[str, Any]:
    match device.get("type"):
        case "gpu":
            resources = {names.GPU_CORE: WHOLE, names.GPU_MEMORY_RATIO: WHOLE}
            memory = device.get("totalMemory")
            return resources if memory is None else {**resources, names.GPU_MEMORY: memory}
        case "rdma":
            return {names.RDMA: WHOLE}
        case "fpga":
            return {names.FPGA: WHOLE}
    return {}


def _entries(written: Any, known: Mapping[str, tuple[str, int]]) -> list[dict[str, Any]]:
    """Derive pods by type of device from shares by device."""
    by_type: dict[str, dict[tuple[str, str], list[int]]] = {}
    for item in written if isinstance(written, list | tuple) else ():
        device = base.section(item, "device") if isinstance(item, Mapping) else {}
        kind, minor = known.get(device.get("uuid", ""), ("", -1))
        if minor < 0:
            continue
        for portion in item.get("allocations") or ():
            pod = base.section(portion, "pod")
            key = (pod.get("namespace", ""), pod.get("name", ""))
            held = by_type.setdefault(kind, {}).setdefault(key, [])
            if minor not in held:
                held.append(minor)
    return [
        {
            "type": kind,
            "entries": [
                {"namespace": namespace, "name": name, "minors": minors}
                for (namespace, name), minors in pods.items()
            ],
        }
        for kind, pods in by_type.items()
    ]
