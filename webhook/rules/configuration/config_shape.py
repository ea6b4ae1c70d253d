"""Refuse cluster settings that have no meaning, with place, value, range and remedy."""

import dataclasses
from collections.abc import Callable, Mapping

from api import names
from domain.cluster_settings import configmap_review, lint
from webhook import review

Labels = Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Which configuration map is meant, and what is held against it."""

    namespace: str = names.NAMESPACE
    name: str = names.CONFIG_MAP_SLO
    names_required: bool = False
    """Whether entries for some nodes need a name of their own."""


def check(
    asked: review.Review, settings: Settings, nodes: Callable[[], Mapping[str, Labels]]
) -> review.Decision:
    """Check the changed keys of the ConfigMap of cluster settings; other ConfigMaps pass unread."""
    metadata = review.section(asked.object, "metadata")
    name = asked.name or metadata.get("name")
    if (asked.namespace, name) != (settings.namespace, settings.name):
        return review.Decision()
    data, old = _texts(asked.object), _texts(asked.old or {})
    warnings = tuple(lint.review(data, old))
    question = configmap_review.Question(data, old, nodes, settings.names_required)
    found = configmap_review.review(question)
    if found is None:
        return review.Decision(warnings=warnings)
    faults = tuple(f"{found.reason}: {fault}" for fault in found.faults)
    return review.Decision(review.Refusal(found.reason, faults), warnings=warnings)


def _texts(body: Mapping[str, review.JSON]) -> Mapping[str, str]:
    written = review.section(body, "data")
    return {key: text for key, text in written.items() if isinstance(text, str)}
