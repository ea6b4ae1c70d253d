"""What a pod wants of devices: its requests by type, and the annotations that say which ones."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from api import names
from api.koordinator import devices
from api.koordinator.metadata import annotations, payloads
from api.kubernetes import meta, selectors
from api.wire import base
from domain.devices import inventory
from domain.devices.requests import requests

LABELS: Final = (names.LABEL_GPU_ISOLATION_PROVIDER,)
ANNOTATIONS: Final = (
    names.ANNOTATION_DEVICE_HINT,
    names.ANNOTATION_DEVICE_JOINT,
    names.ANNOTATION_GPU_PARTITION_SPEC,
)
"""Labels and annotations of pods that are looked at."""
APPLY_FOR_ALL: Final = "ApplyForAll"
REQUESTS_AS_COUNT: Final = "RequestsAsCount"
DEVICE_LEVEL: Final = "DeviceLevel"
PCIE_LEVEL: Final = "PCIeLevel"
_MEMORY: Final = (names.GPU_MEMORY, names.GPU_MEMORY_RATIO)


@dataclasses.dataclass(frozen=True, slots=True)
class PodDevices:
    """What a pod wants of devices."""

    by_type: requests.ByType
    """Normalised, by type of device."""
    gpu: requests.GPURequest | None = None
    """None: no GPU."""
    hints: Mapping[str, payloads.DeviceHint] = dataclasses.field(default_factory=dict)
    """By type of device."""
    joint: tuple[str, ...] = ()
    """Types that it wants close to each other, the one to be chosen first at the beginning."""
    same_pcie: bool = False
    """Whether devices of joint types must be on the same PCIe switches."""
    partition: payloads.PartitionSpec | None = None
    """How strictly it wants the GPUs of one partition; None: it does not ask for it."""
    isolation: str = ""
    """Which isolation of shared GPUs it counts on."""
    templates: Mapping[str, tuple[str, ...]] | None = None
    """By vendor and model, the templates by which it may be given a slice; None: it takes none."""

    @property
    def primary(self) -> str | None:
        """Return the joint type whose devices are chosen first."""
        return self.joint[0] if self.joint else None

    @property
    def shares_gpus(self) -> bool:
        """Whether others may use the rest of its GPUs."""
        return self.gpu is not None and self.gpu.shared


def read(
    asked: requests.Amounts, metadata: Mapping[str, str]
) -> PodDevices | requests.Fault | None:
    """Read what a pod wants; None: no devices.

    ``asked`` are the requests of the pod as a whole, ``metadata`` its labels and annotations of
    the names above.
    """
    found = requests.normalised(asked)
    if isinstance(found, requests.Fault):
        return found
    if not found:
        return None
    try:
        hints, joint, partition = _annotated(metadata)
    except _FaultError as wrong:
        return requests.Fault(str(wrong))
    everywhere = {k for k, hint in hints.items() if hint.allocate_strategy == APPLY_FOR_ALL}
    wanted = joint.device_types if joint else ()
    return PodDevices(
        by_type=found,
        gpu=requests.gpus(found[devices.GPU]) if devices.GPU in found else None,
        hints=hints,
        joint=tuple(dict.fromkeys(k for k in wanted if k in found and k not in everywhere)),
        same_pcie=joint is not None and joint.required_scope == "SamePCIe",
        partition=partition,
        isolation=metadata.get(names.LABEL_GPU_ISOLATION_PROVIDER, ""),
    )


class _FaultError(ValueError):
    """An annotation that cannot be used; its text is the reason."""


def _annotated(
    metadata: Mapping[str, str],
) -> tuple[
    Mapping[str, payloads.DeviceHint], payloads.JointAllocate | None, payloads.PartitionSpec | None
]:
    hints = _payload("DeviceAllocateHint", annotations.DEVICE_HINTS, metadata) or {}
    for kind, hint in hints.items():
        for selector in (hint.selector, hint.vf_selector):
            _check_selector(kind, selector)
    return (
        hints,
        _payload("DeviceJointAllocate", annotations.DEVICE_JOINT, metadata),
        _payload("GPUPartitionSpec", annotations.GPU_PARTITION_SPEC, metadata),
    )


def _payload(
    what: str, payload: annotations.Payload[annotations.T], metadata: Mapping[str, str]
) -> annotations.T | None:
    try:
        return payload.read(metadata)
    except base.ReadError as wrong:
        raise _FaultError(f"invalid {what} annotation, err: {wrong}") from wrong


def gpu_selector(text: str) -> meta.LabelSelector | None:
    """Return what selects GPUs in an annotation with hints; None: any, or the text is no hint."""
    try:
        found = annotations.DEVICE_HINTS.read({names.ANNOTATION_DEVICE_HINT: text}) if text else {}
    except base.ReadError:
        return None
    hint = (found or {}).get(devices.GPU)
    return hint.selector if hint is not None else None


def _check_selector(kind: str, selector: meta.LabelSelector | None) -> None:
    for one in selector.match_expressions if selector else ():
        try:
            selectors.satisfied(None, one.operator, one.values)
        except selectors.SelectorError as wrong:
            raise _FaultError(f"invalid Selector of DeviceHint, type {kind}: {wrong}") from wrong


def may_hold(asked: PodDevices, held: inventory.Allocation) -> bool:
    """Whether a pod with these requests can have been given an allocation.

    Joint allocation and ``ApplyForAll`` give more adapters than the pod names, each in the amount
    that it names; of a GPU it gets no more than its share.
    """
    for kind, granted in held.items():
        if kind not in asked.by_type:
            return False
        if kind == devices.GPU and len(granted) > _gpu_count(asked):
            return False
        if len(granted) > 1 and len({one.minor for one in granted}) != len(granted):
            return False
        for one in granted:
            if not _within(asked, kind, one.amounts):
                return False
    return True


def _gpu_count(asked: PodDevices) -> int:
    return asked.gpu.count if asked.gpu is not None else 0


def _within(asked: PodDevices, kind: str, amounts: requests.Amounts) -> bool:
    if kind == devices.GPU:
        assert asked.gpu is not None
        most: requests.Amounts = asked.gpu.per_gpu
        for name, value in amounts.items():
            # The other of bytes and percent was worked out from the one that the pod named.
            if value > most.get(name, 0) and (name in most or name not in _MEMORY):
                return False
        return True
    listed = asked.by_type[kind]
    # Of adapters that are counted, each is given whole where the pod wants them alone.
    return all(name in listed and value <= requests.WHOLE for name, value in amounts.items())
