"""What a container has to be told about the GPUs that its pod was given."""

from collections.abc import Mapping

import msgspec

from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import subject as subjects
from api import names
from api.wire import quantity, untrusted

HAMI_CORE = "HAMi-core"
LIBRARY = "/usr/local/vgpu/libvgpu.so"
LOCK = "/tmp/vgpulock"  # noqa: S108 - the library itself insists on this path
WHOLE = 100


class AllocationError(adjustments.HookError):
    """An allocation that cannot be honoured; the text names the annotation and what is wrong."""


class Injection(msgspec.Struct, frozen=True):
    """Variables and bind mounts of one container."""

    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    mounts: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Folder or file of the host by the path inside the container."""
    fresh_folder: str = ""
    """A folder of the host that has to be made anew before the container starts."""


class Container(msgspec.Struct, frozen=True):
    """Which container is asked about."""

    pod_uid: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class _Device(msgspec.Struct, frozen=True):
    minor: int = 0
    resources: dict[str, str | int | float] = {}


class _Allocated(msgspec.Struct, frozen=True):
    gpu: list[_Device] | None = None


def injection(
    container: Container, *, library: str = LIBRARY, monitored: bool = False
) -> Injection:
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
    if _amount(devices[0], names.GPU_MEMORY_RATIO) >= WHOLE:
        return Injection(environment)
    return _isolated(container, environment, devices[0], library, monitored=monitored)


class Rule(msgspec.Struct, frozen=True):
    """Where the library that isolates shared GPUs lies, and whether its use is measured."""

    library: str = LIBRARY
    monitored: bool = False


def adjust(subject: subjects.Subject, rule: Rule) -> adjustments.Adjustment:
    """Return variables and mounts of a new container whose pod was given GPUs."""
    container, meta = subject.container, subject.pod.pod.metadata
    if container is None:
        return adjustments.NOTHING
    asked = Container(meta.uid, container.name, meta.labels, meta.annotations)
    found = injection(asked, library=rule.library, monitored=rule.monitored)
    if found == Injection():
        return adjustments.NOTHING
    entitled(subject)
    return adjustments.Adjustment(
        environment=found.environment, mounts=found.mounts, fresh_folder=found.fresh_folder
    )


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


def _isolated(
    container: Container,
    environment: Mapping[str, str],
    device: _Device,
    library: str,
    *,
    monitored: bool,
) -> Injection:
    added = dict(environment)
    memory = _amount(device, names.GPU_MEMORY)
    added["CUDA_DEVICE_MEMORY_LIMIT"] = str(memory)
    if names.GPU_CORE in device.resources:
        added["CUDA_DEVICE_SM_LIMIT"] = str(_amount(device, names.GPU_CORE))
    added["LD_PRELOAD"] = library
    mounts = {library: library, LOCK: LOCK}
    if not monitored:
        return Injection(added, mounts)
    folder = library.rpartition("/")[0]
    identity = f"{container.pod_uid}_{container.name}"
    added["CUDA_DEVICE_MEMORY_SHARED_CACHE"] = f"{folder}/{identity}.cache"
    fresh = f"{folder}/containers/{identity}"
    return Injection(added, {**mounts, folder: fresh}, fresh)


def _amount(device: _Device, resource: str) -> int:
    written = device.resources.get(resource)
    if written is None:
        key = names.ANNOTATION_DEVICE_ALLOCATED
        raise AllocationError(f"annotation {key}: the first gpu has no {resource}")
    try:
        return quantity.whole(str(written))
    except quantity.QuantityError as error:
        raise AllocationError(f"{resource}: {error}") from error
