"""Refusals become counters, log lines and events on the pod that waits."""

import logging

from extender.explain import recent_refusals
from extender.verbs import verbs
from kube.controllers import recorder
from process.configuration import switches
from process.runtime import metrics, series

logger = logging.getLogger(__name__)


class Notices:
    """Reports refusals as counters, log lines and events."""

    def __init__(self, registry: metrics.Registry, events: recorder.EventRecorder) -> None:
        self.recent = recent_refusals.RecentRefusals()
        self._events = events
        self._refusals = registry.counter(
            "koord_extender_refusals_total",
            "Nodes refused to pods, by plug-in, reason and whether the refusal counted.",
            ("plugin", "reason", "mode"),
        )
        self._counted: dict[tuple[str, str, str], series.Count] = {}

    def tell(self, refused: verbs.Refused) -> None:
        """Count what one call refused; log it when it says something new."""
        explanation = refused.explanation
        if refused.by_plugin:
            self.recent.put(
                recent_refusals.RecentRefusal(
                    explanation.pod, explanation.at, explanation.asked, refused.by_plugin
                )
            )
        for (plugin, reason), count in refused.by_plugin.items():
            key = plugin, reason, explanation.mode
            counted = self._counted.get(key)
            if counted is None:
                # Looking labels up takes longer than counting.
                counted = self._counted[key] = self._refusals.labels(*key)
            counted.inc(count)
        if not refused.is_new or not explanation.reasons:
            return
        if explanation.passed:
            # It finds a place elsewhere: no explanation is needed.
            level = logging.DEBUG
        else:
            level = logging.INFO
            self._announce(refused)
        if not logger.isEnabledFor(level):
            return
        logger.log(
            level,
            "nodes refused pod=%s mode=%s summary=%s",
            explanation.pod,
            explanation.mode,
            explanation.sentence(),
        )

    def _announce(self, refused: verbs.Refused) -> None:
        """Put the reason with its figures where describing the pod shows it."""
        explanation = refused.explanation
        enforced = explanation.mode == switches.Mode.ENFORCE
        namespace, _, name = explanation.pod.partition("/")
        self._events.event(
            recorder.Regarding("v1", "Pod", name, namespace, explanation.uid),
            "Warning" if enforced else "Normal",
            "NodesRefused" if enforced else "NodesWouldBeRefused",
            explanation.sentence(),
            "Filter",
        )
