"""Refuse labels by which a node would match two entries of one key of the cluster settings."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.koordinator.settings import configuration
from api.kubernetes import selectors
from api.wire import base
from webhook import review

GROUP = "node"
CHECKED: Final = (
    configuration.COLOCATION,
    configuration.RESOURCE_THRESHOLD,
    configuration.RESOURCE_QOS,
    configuration.SYSTEM,
    configuration.CPU_BURST,
    configuration.POD_OVERRIDE_LIMITS,
)
Entries = tuple[tuple[str, configuration.Entry], ...]


def entries(data: Mapping[str, str] | None) -> Mapping[str, Entries]:
    """Read the entries for some nodes of every checked key that can be read, with their names."""
    found: dict[str, Entries] = {}
    for key in CHECKED:
        text = (data or {}).get(key)
        if not text:
            continue
        try:
            read = configuration.read(key, text)
        except base.ReadError:
            # The settings are checked where they are written; a node is not the place.
            continue
        listed: tuple[configuration.Entry, ...] = (
            getattr(read, "node_configs", None) or getattr(read, "node_strategies", None) or ()
        )
        if len(listed) > 1:
            found[key] = tuple((one.name or f"#{n}", one) for n, one in enumerate(listed))
    return found


def check(asked: review.Review, data: Mapping[str, str] | None) -> review.Refusal | None:
    """Refuse changed labels that more than one entry of a key selects."""
    labels = _labels(asked.object)
    if asked.old is None or labels == _labels(asked.old):
        return None
    found = tuple(conflicts(labels, entries(data)))
    return review.Refusal(GROUP, found) if found else None


def conflicts(labels: Mapping[str, Any], settings: Mapping[str, Entries]) -> Iterator[str]:
    """Yield a sentence per key of which more than one entry selects these labels."""
    for key, listed in settings.items():
        matched = [name for name, entry in listed if _selects(entry, labels)]
        if len(matched) > 1:
            yield (
                f"metadata.labels: Forbidden: the node would match the entries "
                f"{', '.join(matched)} of {key}, of which only {matched[0]} would count; change "
                "the labels or the nodeSelector of one entry"
            )


def _selects(entry: configuration.Entry, labels: Mapping[str, Any]) -> bool:
    return entry.node_selector is not None and selectors.matches(entry.node_selector, labels)


def _labels(node: review.Pod) -> Mapping[str, Any]:
    return review.section(review.section(node, "metadata"), "labels")
