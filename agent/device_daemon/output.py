"""What the daemon writes: device file, labels file, labels and annotation of its Node. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agent.device_daemon.hardware import findings
from agent.devices import vendor_records
from api import names

LABELS: Final = (
    names.LABEL_GPU_VENDOR,
    names.LABEL_GPU_MODEL,
    names.LABEL_GPU_DRIVER,
    names.LABEL_GPU_PARTITION_POLICY,
    *names.LABEL_DEVICE_COUNTS.values(),
)
"""All labels that the daemon may set on its Node."""
ANNOTATIONS: Final = (names.ANNOTATION_DEVICES,)
"""All annotations that the daemon may set on its Node."""
OWN_LABELS: Final = frozenset(names.LABEL_DEVICE_COUNTS.values())
"""Labels that nothing else sets; the manager sets the others too, from the Device."""
LONGEST_ANNOTATION: Final = 32 * 1024


def device_file(records: Iterable[vendor_records.Record], moment: str | None) -> str:
    """Return the device file: a JSON list with two spaces of indentation.

    With a moment (RFC 3339) every record carries it as `timestamp`, which readers pass over.
    """
    listed = [_written(one) | ({"timestamp": moment} if moment else {}) for one in records]
    return json.dumps(listed, indent=2, ensure_ascii=False) + "\n"


def labels(found: Sequence[findings.Findings]) -> dict[str, str]:
    """Return the labels of a node: what the first manager says, and devices by kind.

    One manager alone names vendor and model: of two they would describe a device that is not there.
    """
    said = next((one.labels for one in found if one.labels), {})
    values = {key: value for key, value in said.items() if key in LABELS}
    for kind, key in names.LABEL_DEVICE_COUNTS.items():
        count = sum(card.kind == kind for one in found for card in one.cards)
        if count:
            values[key] = str(count)
    return values


def labels_file(values: Mapping[str, str], seconds: int | None) -> str:
    """Return labels as node-feature-discovery reads them from features.d: `name=value` by line.

    With `seconds` since the epoch one more label carries them.
    """
    lines = dict(values)
    if seconds is not None:
        lines[names.LABEL_DEVICES_TIMESTAMP] = str(seconds)
    return "".join(f"{key}={value}\n" for key, value in sorted(lines.items()))


def annotation(found: Sequence[findings.Findings]) -> str:
    """Return all devices by kind as JSON, empty without a device.

    Where that is longer than an annotation should be, only addresses are left of each device, and
    of those as many as fit.
    """
    cards = sorted(
        (card for one in found for card in one.cards), key=lambda one: (one.kind, one.bus)
    )
    text = _by_kind(cards, _shown)
    if len(text) <= LONGEST_ANNOTATION:
        return text
    return _by_kind(cards[: LONGEST_ANNOTATION // 64], lambda card: {"bus": card.bus})


def _by_kind(cards: Iterable[findings.Card], shown: Any) -> str:
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for card in cards:
        kinds.setdefault(card.kind, []).append(shown(card))
    return json.dumps(kinds, separators=(",", ":")) if kinds else ""


def _shown(card: findings.Card) -> Mapping[str, Any]:
    known = {
        "bus": card.bus or None,
        "id": card.identity or None,
        "minor": card.minor,
        "numaNode": card.node,
        "healthy": card.healthy,
    }
    return {key: value for key, value in known.items() if value is not None}


def _written(record: vendor_records.Record) -> dict[str, Any]:
    """Return a record with the keys and in the order that readers know; numbers are strings."""
    written: dict[str, Any] = {
        "vendor": record.vendor,
        "model": record.model,
        "uuid": record.uuid,
        "minor": record.minor,
        "resources": {key: str(value) for key, value in record.resources.items()},
    }
    if record.topology is not None:
        written["topology"] = {
            "socketID": record.topology.socket,
            "nodeID": record.topology.node,
            "pcieID": record.topology.pcie,
            "busID": record.topology.bus,
        }
    if record.status is not None:
        written["status"] = {
            "healthy": record.status.healthy,
            "errCode": record.status.err_code,
            "errMessage": record.status.err_message,
        }
    return written
