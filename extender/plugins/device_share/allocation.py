"""What a pod wants of devices, what it was given, and how that is recorded on it."""

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from api import names
from domain.devices import inventory, pod_devices, pod_holdings, records
from domain.devices.allocation import fragmentation
from domain.devices.requests import gpu_templates, requests
from extender.framework import verdicts, views

NAME: Final = "DeviceShare"


class Wanted(msgspec.Struct, frozen=True, cache_hash=True):
    """What PreFilter reads of a pod; pods that are alike have equal ones."""

    requests: views.Pairs
    """Of devices only."""
    inputs: tuple[tuple[str, str], ...]
    """The labels and annotations that say which devices."""
    priority: int = 0
    task: fragmentation.Task | None = None
    """Where fragmentation is scored: what the pod takes."""
    templates: gpu_templates.Matching | None = None
    """By which it may be given a slice of an NPU; None: it takes none."""


Asked = pod_devices.PodDevices | None


class Devices(msgspec.Struct, frozen=True):
    """The devices of one pod."""

    by_type: inventory.Allocation

    def without(self, parts: Sequence["Devices"]) -> "Devices | None":
        """Return what others do not hold of each device, None where that is nothing."""
        left = inventory.left(self.by_type, [one.by_type for one in parts])
        return Devices(left) if left else None


_SHORT: Final = 512
"""Characters of annotations that are remembered with what they say; most are shorter ..."""
_MOST: Final = 4096
"""... and how many of them."""
_METADATA: Final = frozenset((*pod_devices.LABELS, *pod_devices.ANNOTATIONS))


def wanted(requirements: views.PodRequirements, *, scored: bool = False) -> Wanted | None:
    """Return what a pod wants; None: no devices, and its place is not scored either."""
    asked = tuple([one for one in requirements.requests if one[0] in requests.RESOURCES])
    if not asked and not scored:
        return None
    inputs: tuple[tuple[str, str], ...] = ()
    if asked and requirements.inputs:
        inputs = tuple([one for one in requirements.inputs if one[0] in _METADATA])
    task = _task(requirements, asked, inputs) if scored else None
    return Wanted(asked, inputs, requirements.priority, task)


@functools.lru_cache(maxsize=4096)
def read(
    asked: views.Pairs, inputs: tuple[tuple[str, str], ...]
) -> pod_devices.PodDevices | requests.Fault | None:
    """Read the requests and annotations of a pod."""
    return pod_devices.read(dict(asked), dict(inputs))


class Prepared(NamedTuple):
    """What PreFilter finds in the requirements of a pod, whatever the cluster is like."""

    found: Wanted | verdicts.Status | None
    sliced: pod_devices.PodDevices | None = None
    """The same where only templates give what the pod takes of GPUs."""


def prepared(
    requirements: views.PodRequirements, *, scored: bool, matched: Collection[str]
) -> Prepared:
    """Read what a pod wants, or why no node can serve it; `matched` are given by templates only."""
    found = wanted(requirements, scored=scored)
    if found is None:
        return Prepared(None)
    asked = read(found.requests, found.inputs)
    if isinstance(asked, requests.Fault):
        return Prepared(verdicts.Status(asked.reason))
    if asked is None or not gpu_templates.concern(asked.gpu, matched):
        return Prepared(found)
    return Prepared(found, asked)


def of(prepared: Wanted) -> pod_devices.PodDevices | None:
    """Return what a pod wants that PreFilter let pass; None: no devices."""
    found = read(prepared.requests, prepared.inputs)
    assert not isinstance(found, requests.Fault)
    if found is None or prepared.templates is None:
        return found
    return dataclasses.replace(found, templates=dict(prepared.templates))


def hint(prepared: Wanted) -> str:
    """Return the annotation that says which devices may serve a pod, empty where none does."""
    return dict(prepared.inputs).get(names.ANNOTATION_DEVICE_HINT, "")


def _task(
    requirements: views.PodRequirements, asked: views.Pairs, inputs: tuple[tuple[str, str], ...]
) -> fragmentation.Task:
    """Return what a pod takes of GPUs by percent; memory in bytes has no percent of its own."""
    amounts = dict(requirements.requests)
    task = fragmentation.Task(amounts.get(names.CPU, 0), amounts.get(names.MEMORY, 0))
    found = read(asked, inputs)
    if not isinstance(found, pod_devices.PodDevices) or found.gpu is None:
        return task
    share = found.gpu.per_gpu.get(names.GPU_MEMORY_RATIO, requests.WHOLE)
    return fragmentation.Task(task.cpu, task.memory, found.gpu.count, min(share, requests.WHOLE))


class Codec:
    """AllocationCodec: the annotation that device plug-ins, runtimes and agents read."""

    name = NAME
    annotations = (names.ANNOTATION_DEVICE_ALLOCATED,)

    def __init__(self, asked: Callable[[views.PodRequirements], Asked] | None = None) -> None:
        """Begin with nothing read or written; `asked` is what remembers what pods ask for."""
        self._known: dict[str, Devices] = {}
        self._asked = asked or asked_of

    def decode(
        self, annotations: Mapping[str, str], wanted: views.PodRequirements
    ) -> Devices | None:
        """Read the devices of a pod; ValueError where it cannot have been given them."""
        text = annotations[names.ANNOTATION_DEVICE_ALLOCATED]
        held = self._known.get(text)
        if held is None:
            held = Devices(records.decoded(text))
            self._remember(text, held)
        return held if pod_holdings.believed(held.by_type, self._asked(wanted)) else None

    def encode(self, allocation: Devices) -> Mapping[str, str]:
        """Write the devices of a pod."""
        written = records.encoded(allocation.by_type)
        if records.is_plain(allocation.by_type):
            # The watch will show it, at the bind and with every change of the pod's status. It is
            # read as the very object that is counted, which need not be compared part by part.
            self._remember(written[names.ANNOTATION_DEVICE_ALLOCATED], allocation)
        return written

    def _remember(self, text: str, held: Devices) -> None:
        if len(text) > _SHORT:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[text] = held

    def conflicts(self, one: Devices, other: Devices) -> bool:
        """Whether two pods together hold more than a device, in percent, or a virtual function."""
        held = [
            (mine, theirs)
            for kind, granted in one.by_type.items()
            for theirs in other.by_type.get(kind, ())
            for mine in granted
            if mine.minor == theirs.minor
        ]
        if not held:
            return False
        return self.exceeds(one, (other,)) or any(
            not _functions(mine).isdisjoint(_functions(theirs)) for mine, theirs in held
        )

    def exceeds(self, one: Devices, others: Sequence[Devices]) -> bool:
        """Whether a pod takes more of a device, in percent, than others leave of it."""
        for kind, granted in one.by_type.items():
            for mine in granted:
                held = [
                    theirs.amounts
                    for other in others
                    for theirs in other.by_type.get(kind, ())
                    if theirs.minor == mine.minor
                ]
                if held and _is_exceeded(mine.amounts, held):
                    return True
        return False


_PERCENTAGES: Final = (names.GPU_CORE, names.GPU_MEMORY_RATIO, names.RDMA, names.FPGA)


def _is_exceeded(amounts: requests.Amounts, held: Sequence[requests.Amounts]) -> bool:
    for name in _PERCENTAGES:
        taken = sum([one.get(name, 0) for one in held])
        if taken > 0 and amounts.get(name, 0) > max(requests.WHOLE - taken, 0):
            return True
    return False


def _functions(one: inventory.Granted) -> frozenset[str]:
    """Return the addresses of the virtual functions that a pod holds of one adapter."""
    return frozenset(function.bus_id for function in one.functions)


def asked_of(requirements: views.PodRequirements) -> Asked:
    """Return the devices that a pod asks for; None where that is none, or cannot be served."""
    return asked_by(wanted(requirements))


def asked_by(prepared: Wanted | verdicts.Status | None) -> Asked:
    """Return the same of what PreFilter finds."""
    if not isinstance(prepared, Wanted):
        return None
    found = read(prepared.requests, prepared.inputs)
    return found if isinstance(found, pod_devices.PodDevices) else None
