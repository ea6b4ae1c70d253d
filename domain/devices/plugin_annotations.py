"""Annotations of a Pod from which device plug-ins of vendors learn which devices it was given.

The kubelet chooses devices by number and tells a device plug-in nothing of the pod; these plug-ins
find the pod by its annotations instead, written together with its node.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import orjson

from api import names
from api.koordinator import devices
from domain.devices import inventory

HUAWEI: Final = "huawei"
CAMBRICON: Final = "cambricon"
METAX: Final = "metax"

_ASCEND_310P: Final = "Ascend-310P3-300I-DUO"
_MIB: Final = 1 << 20
_CAMBRICON_UNIT: Final = 256 * _MIB
"""Device plug-ins of Cambricon count memory in these."""

Granted = Sequence[inventory.Granted]


@dataclasses.dataclass(frozen=True, slots=True)
class Annotations:
    """What is written on a pod for device plug-ins."""

    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    bind_times: tuple[str, ...] = ()
    """Annotations whose value is the moment of the bind: nanoseconds since the epoch."""


@dataclasses.dataclass(frozen=True, slots=True)
class Unsupported:
    """Why the device plug-in of a vendor cannot serve an allocation."""

    reason: str


def annotations(
    found: inventory.Allocation, labels: Mapping[str, str]
) -> Annotations | Unsupported:
    """Return what device plug-ins read of an allocation.

    `labels` are those of the Device object; they name vendor and model.
    """
    gpus = found.get(devices.GPU, ())
    times: tuple[str, ...] = (names.ANNOTATION_BIND_TIMESTAMP,)
    if not gpus:
        return Annotations(bind_times=times)
    common = {names.ANNOTATION_GPU_MINORS: _minors(gpus)}
    vendor, model = inventory.gpu_model(labels)
    if vendor == HUAWEI:
        times += (names.ANNOTATION_HUAWEI_PREDICATE_TIME,)
        return Annotations(common | _huawei(gpus, model), times)
    special = _VENDORS.get(vendor)
    if special is None:
        return Annotations(common, times)
    more = special(gpus)
    return more if isinstance(more, Unsupported) else Annotations(common | more, times)


def _minors(gpus: Granted) -> str:
    return ",".join(str(one.minor) for one in gpus)


def _huawei(gpus: Granted, model: str) -> dict[str, str]:
    if model == _ASCEND_310P:
        cards = ",".join(f"Ascend310P-{one.minor}" for one in gpus)
        return {names.ANNOTATION_HUAWEI_ASCEND_310P: cards}
    first = gpus[0]
    text = f"{first.minor}-{first.template}" if first.template else _minors(gpus)
    return {names.NPU_CORE: text}


def _cambricon(gpus: Granted) -> dict[str, str] | Unsupported:
    core = gpus[0].amounts.get(names.GPU_CORE, 0)
    memory = gpus[0].amounts.get(names.GPU_MEMORY, 0)
    if len(gpus) > 1 or core <= 0 or memory < _CAMBRICON_UNIT:
        return Unsupported(
            "Device plug-in of cambricon serves one device with gpu-core and 256Mi of gpu-memory"
        )
    return {
        names.ANNOTATION_CAMBRICON_ASSIGNED: "false",
        names.ANNOTATION_CAMBRICON_PROFILE: f"{gpus[0].minor}_{core}_{memory // _CAMBRICON_UNIT}",
    }


def _metax(gpus: Granted) -> dict[str, str] | Unsupported:
    rows = []
    for one in gpus:
        core, memory = one.amounts.get(names.GPU_CORE, 0), one.amounts.get(names.GPU_MEMORY, 0)
        if core <= 0 or memory < _MIB:
            return Unsupported("Device plug-in of metax serves gpu-core with 1Mi of gpu-memory")
        rows.append({"uuid": one.id, "compute": core, "vRam": memory // _MIB})
    return {names.ANNOTATION_METAX_ALLOCATED: orjson.dumps([rows]).decode()}


_VENDORS: Final[Mapping[str, Callable[[Granted], dict[str, str] | Unsupported]]] = {
    CAMBRICON: _cambricon,
    METAX: _metax,
}
