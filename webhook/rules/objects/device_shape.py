"""Check Devices: two entries that claim one device, and tables that cannot be read."""

from collections.abc import Iterator

from api.koordinator import devices
from api.koordinator.metadata import annotations
from api.wire import base
from webhook import review


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Look for the same index or the same identifier twice."""
    read = devices.review_device(asked.object)
    faults = tuple(_twice(read.value))
    warnings = list(read.warnings)
    try:
        annotations.GPU_PARTITIONS.read(read.value.metadata.annotations)
    except base.ReadError as wrong:
        warnings.append(f"metadata.annotations: {wrong}; the node has no partitions")
    return review.Findings(faults, tuple(warnings))


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
