"""What a container has to be told about the GPUs that its pod was given."""

from collections.abc import Mapping

import msgspec

from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import subject as subjects
from api import names
from api.koordinator import resource_names
from api.wire import quantity, untrusted

HAMI_CORE = "HAMi-core"
LIBRARY = "/usr/local/vgpu/libvgpu.so"
LOCK = "/tmp/vgpulock"  # noqa: S108 - the library itself insists on this path
WHOLE = 100
_Amounts = Mapping[str, quantity.Written]


class AllocationError(adjustments.HookError):
    """An allocation that cannot be honoured; the text names the annotation and what is wrong."""


class Injection(msgspec.Struct, frozen=True):
    """Variables and bind mounts of one container."""

    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    mounts: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Folder or file of the host by the path inside the container."""


class Container(msgspec.Struct, frozen=True):
    """What the pod of a container says."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class _Device(msgspec.Struct, frozen=True):
    minor: int = 0
    resources: dict[str, quantity.Written] = {}


class _Allocated(msgspec.Struct, frozen=True):
    gpu: list[_Device] | None = None


def injection(container: Container) -> Injection:
    """Return what to add to a container, nothing where its pod has no GPU."""
    key = names.ANNOTATION_DEVICE_ALLOCATED
    written = container.annotations.get(key)
    if not written:
        return Injection()
    try:
        devices = untrusted.decode(written, _Allocated, f"annotation {key}").gpu
    except untrusted.ReadError as error:
        raise AllocationError(str(error)) from error
    if not devices:
        return Injection()
    environment = {"NVIDIA_VISIBLE_DEVICES": ",".join(str(device.minor) for device in devices)}
    if container.labels.get(names.LABEL_GPU_ISOLATION_PROVIDER) != HAMI_CORE:
        return Injection(environment)
    held = resource_names.current(devices[0].resources)
    if _amount(held, names.GPU_MEMORY_RATIO) >= WHOLE:
        return Injection(environment)
    return _isolated(environment, held)


def adjust(subject: subjects.Subject, _rule: None) -> adjustments.Adjustment:
    """Return variables and mounts of a new container whose pod was given GPUs."""
    meta = subject.pod.pod.metadata
    if subject.container is None:
        return adjustments.NOTHING
    asked = Container(meta.labels, meta.annotations)
    found = injection(asked)
    if found == Injection():
        return adjustments.NOTHING
    entitled(subject)
    return adjustments.Adjustment(environment=found.environment, mounts=found.mounts)


HOOK = adjustments.Hook("GPUEnvInject", adjust)


def entitled(subject: subjects.Subject) -> None:
    """Raise an AllocationError where a pod requests less than its annotation gives it."""
    from domain.devices import pod_holdings  # noqa: PLC0415 - 2.4 MiB, on nodes with devices only

    key = names.ANNOTATION_DEVICE_ALLOCATED
    if not subject.spec_known:
        raise AllocationError(f"annotation {key}: what the pod requests is not known yet")
    held = pod_holdings.holding(subject.pod.pod)
    if held is None or held.fault:
        why = "it names no device" if held is None else held.fault
        raise AllocationError(f"annotation {key}: {why}")


def _isolated(environment: Mapping[str, str], held: _Amounts) -> Injection:
    added = dict(environment)
    memory = _amount(held, names.GPU_MEMORY)
    added["CUDA_DEVICE_MEMORY_LIMIT"] = str(memory)
    if names.GPU_CORE in held:
        added["CUDA_DEVICE_SM_LIMIT"] = str(_amount(held, names.GPU_CORE))
    added["LD_PRELOAD"] = LIBRARY
    return Injection(added, {LIBRARY: LIBRARY, LOCK: LOCK})


def _amount(held: _Amounts, resource: str) -> int:
    written = held.get(resource)
    if written is None:
        key = names.ANNOTATION_DEVICE_ALLOCATED
        raise AllocationError(f"annotation {key}: the first gpu has no {resource}")
    try:
        return quantity.whole(str(written))
    except quantity.QuantityError as error:
        raise AllocationError(f"{resource}: {error}") from error
