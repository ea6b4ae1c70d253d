"""Refusals become counters, log lines and events on the pod that waits."""

import logging

from extender import verbs
from process import metrics

logger = logging.getLogger(__name__)


class Notices:
    """Tells people and collectors what was refused."""

    def __init__(self, registry: metrics.Registry) -> None:
        self._refusals = registry.counter(
            "koord_extender_refusals_total",
            "Nodes refused to pods, by plug-in, reason and whether the refusal counted.",
            ("plugin", "reason", "mode"),
        )

    def tell(self, refused: verbs.Refused) -> None:
        """Count what one call refused; log it when it says something new."""
        explanation = refused.explanation
        for (plugin, reason), count in refused.by_plugin.items():
            self._refusals.labels(plugin, reason, explanation.mode).inc(count)
        if refused.is_new and explanation.reasons:
            logger.info(
                "nodes refused pod=%s mode=%s summary=%s",
                explanation.pod,
                explanation.mode,
                explanation.sentence(),
            )
