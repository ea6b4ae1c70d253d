"""Check Devices: two entries that claim one device, and tables that cannot be read."""

from collections.abc import Iterator

from api import names
from api.koordinator import devices
from api.koordinator.metadata import annotations
from api.wire import base
from domain.devices import inventory
from webhook import review


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Look for the same index or the same identifier twice."""
    read = devices.review_device(asked.object)
    faults = tuple(_twice(read.value))
    return review.Findings(faults, (*read.warnings, *_partitions(read.value)))


def _partitions(device: devices.Device) -> Iterator[str]:
    """Yield why partitions do not count."""
    key = names.ANNOTATION_GPU_PARTITIONS
    try:
        table = annotations.GPU_PARTITIONS.read(device.metadata.annotations) or {}
    except base.ReadError as wrong:
        yield f"metadata.annotations: {wrong}; the node has no partitions"
        return
    if sum(map(len, table.values())) > inventory.MOST_PARTITIONS:
        yield (
            f"metadata.annotations: annotation {key}: more than {inventory.MOST_PARTITIONS} "
            "partitions; the node has no partitions"
        )
    for size, listed in table.items():
        if not all(inventory.is_partition(size, one) for one in listed):
            yield (
                f"metadata.annotations: annotation {key}: {size}: a partition that does not name "
                f"{size} different minors does not count"
            )


def _twice(device: devices.Device) -> Iterator[str]:
    seen: dict[tuple[str, str, object], int] = {}
    for index, one in enumerate(device.spec.devices):
        for field, value in (("minor", one.minor), ("id", one.id or None)):
            if value is None:
                continue
            first = seen.setdefault((one.type, field, value), index)
            if first != index:
                yield (
                    f'spec.devices[{index}].{field}: Duplicate value: "{value}": '
                    f"spec.devices[{first}] of type {one.type or '(none)'} has it already"
                )
