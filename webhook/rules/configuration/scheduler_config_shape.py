"""Refuse a scheduler configuration whose plug-in arguments have no meaning."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from api import names
from domain.scheduler_settings import documents
from webhook import review

GROUP: Final = "SchedulerConfigInvalid"


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Which configuration map is meant."""

    namespace: str = names.NAMESPACE
    name: str = names.CONFIG_MAP_SCHEDULER


def is_meant(asked: review.Review, settings: Settings) -> bool:
    """Tell whether a configuration map is the one of the scheduler."""
    name = asked.name or review.section(asked.object, "metadata").get("name")
    return (asked.namespace, name) == (settings.namespace, settings.name)


def check(asked: review.Review, settings: Settings) -> review.Decision:
    """Check a scheduler configuration that changes; other ConfigMaps pass unread."""
    if not is_meant(asked, settings):
        return review.Decision()
    data = _texts(asked.object)
    if data == _texts(asked.old or {}):
        # An older fault does not block a change of a label.
        return review.Decision()
    reading = documents.read(data)
    faults = tuple(f"{GROUP}: {fault}" for fault in reading.faults)
    refusal = review.Refusal(GROUP, faults) if faults else None
    return review.Decision(refusal, warnings=reading.warnings)


def _texts(body: Mapping[str, review.JSON]) -> Mapping[str, str]:
    written = review.section(body, "data")
    return {key: text for key, text in written.items() if isinstance(text, str)}
