"""Dynamic Resource Allocation: ResourceSlices and ResourceClaims, as far as they are read."""

from typing import Any

import msgspec

from api.kubernetes import core


class Attribute(core.Wire, frozen=True, gc=False):
    """The value of one attribute of a device; only texts identify a device."""

    string: str | None = None


class SliceDevice(core.Wire, frozen=True, gc=False):
    """One device that a driver offers."""

    name: str = ""
    attributes: dict[str, Attribute] = msgspec.field(default_factory=dict)
    node_name: str = ""
    """Its node where the slice has ``perDeviceNodeSelection``."""


class Pool(core.Wire, frozen=True, gc=False):
    """The pool that a slice belongs to; only its newest generation counts."""

    name: str = ""
    generation: int = 0


class SliceSpec(core.Wire, frozen=True, gc=False):
    """What a driver offers."""

    driver: str = ""
    pool: Pool = Pool()
    node_name: str = ""
    devices: tuple[SliceDevice, ...] = ()


class ResourceSlice(core.Wire, frozen=True, gc=False):
    """Devices of one pool of a driver."""

    metadata: core.ObjectMeta = core.ObjectMeta()
    spec: SliceSpec = SliceSpec()


class Result(core.Wire, frozen=True, gc=False):
    """One device that a claim was given."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    """Access beside the holder, which takes nothing away."""


class DeviceResults(core.Wire, frozen=True, gc=False):
    """The devices that a claim was given."""

    results: tuple[Result, ...] = ()


class Allocation(core.Wire, frozen=True, gc=False):
    """What a claim was given."""

    devices: DeviceResults = DeviceResults()


class ClaimStatus(core.Wire, frozen=True, gc=False):
    """Whether a claim was given devices, and which."""

    allocation: Allocation | None = None


class ResourceClaim(core.Wire, frozen=True, gc=False):
    """A request for devices, which holds them from its allocation to its deallocation."""

    metadata: core.ObjectMeta = core.ObjectMeta()
    status: ClaimStatus = ClaimStatus()


def read_slice(raw: Any) -> ResourceSlice:
    """Read a ResourceSlice; ValueError where it has another shape."""
    return msgspec.convert(raw, ResourceSlice)


def read_claim(raw: Any) -> ResourceClaim:
    """Read a ResourceClaim; ValueError where it has another shape."""
    return msgspec.convert(raw, ResourceClaim)
