"""Keeps the settings of the cluster as its configuration map says, or said when it last did."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from api import resources
from api.koordinator import event_reasons
from api.koordinator.settings import configuration
from api.kubernetes import core
from kube.controllers import controller
from kube.informers import store
from manager.cluster_settings import effective
from manager.cluster_settings import plan as cluster_settings
from manager.reconcile import actions, apply
from process.runtime import metrics

_REASON_SLO: Final = "SLOCfgUnmarshalFailed"
_REASONS: Final[Mapping[str, event_reasons.Reason]] = {
    configuration.COLOCATION: "ColocationCfgUnmarshalFailed",
    configuration.CPU_NORMALIZATION: "CPUNormalizationCfgUnmarshalFailed",
    configuration.RESOURCE_AMPLIFICATION: "ResourceAmplificationCfgUnmarshalFailed",
}
_REASON_ENTRY: Final = "EntryIgnored"
_REASON_USED: Final = "ValueOutOfRange"
_LONGEST_NOTE: Final = 1000
_LONGEST_PATH: Final = 200
_MOST_FAULTS: Final = 100


class View(msgspec.Struct, frozen=True, gc=False):
    """A configuration map, without the rest of its metadata."""

    uid: str
    data: dict[str, str]


def view(raw: core.ConfigMap) -> View:
    """Project a configuration map."""
    return View(raw.metadata.uid, raw.data)


class Settings:
    """The present settings, and the listeners to their changes."""

    def __init__(
        self,
        maps: store.Store[View],
        writer: apply.Writer,
        registry: metrics.Registry,
        changed: Callable[[], None],
    ) -> None:
        self._maps = maps
        self._writer = writer
        self._changed = changed
        self._current: effective.ClusterSettings | None = None
        self._kept = registry.gauge(
            "koord_manager_settings_refused",
            "1 while a key of the configuration map is unreadable and keeps what it said before.",
            ("key",),
        )
        self._faults = registry.gauge(
            "koord_manager_settings_faults",
            "Values of the configuration map that are wrong, by place and by what becomes of them: "
            "the key is kept as it was, the entry is ignored, or the value is used all the same.",
            ("key", "path", "effect"),
        )

    def current(self) -> effective.ClusterSettings | None:
        """Return what holds now; None before the first reading."""
        return self._current

    async def reconcile(self, key: str) -> controller.Outcome:
        """Read the configuration map of this key."""
        found = self._maps.get(key)
        if found is None and self._current is not None:
            return controller.Outcome("no configuration map; what held still holds", changed=False)
        reading = cluster_settings.read(self._current, None if found is None else found.data)
        changed = reading.settings != self._current
        self._current = reading.settings
        self._show(reading.problems)
        if changed:
            self._changed()
        return await self._writer.carry_out(_told(key, found, reading, changed=changed))

    def _show(self, problems: tuple[cluster_settings.Problem, ...]) -> None:
        kept = {one.key for one in problems if one.effect is cluster_settings.Effect.KEPT}
        for name in effective.DEFAULTS:
            self._kept.labels(name).set(int(name in kept))
        self._faults.clear()
        for one in problems[:_MOST_FAULTS]:
            self._faults.labels(one.key, one.path[:_LONGEST_PATH], one.effect).set(1)


def _told(
    key: str, found: View | None, reading: cluster_settings.Reading, *, changed: bool
) -> actions.Plan:
    namespace, _, name = key.partition("/")
    uid = found.uid if found is not None else ""
    steps = tuple(
        actions.Tell(
            resources.CONFIG_MAPS, name, uid, reason, note, warning=True, namespace=namespace
        )
        for reason, note in _notes(reading.problems).items()
    )
    state = "settings read" if changed else "settings unchanged"
    if found is None:
        state = "no configuration map yet; the defaults hold"
    notes = "; ".join(problem.sentence for problem in reading.problems)
    return actions.Plan(f"{state}; {notes}" if notes else state, steps)


def _notes(problems: tuple[cluster_settings.Problem, ...]) -> dict[event_reasons.Reason, str]:
    """Return what is to be said by reason; one event holds only so much."""
    gathered: dict[event_reasons.Reason, list[str]] = {}
    for problem in problems:
        gathered.setdefault(_reason(problem), []).append(problem.sentence)
    return {reason: _joined(sentences) for reason, sentences in gathered.items()}


def _joined(sentences: list[str]) -> str:
    text = "; ".join(sentences)
    return text if len(text) <= _LONGEST_NOTE else f"{text[: _LONGEST_NOTE - 1]}…"


def _reason(problem: cluster_settings.Problem) -> event_reasons.Reason:
    match problem.effect:
        case cluster_settings.Effect.IGNORED:
            return _REASON_ENTRY
        case cluster_settings.Effect.USED:
            return _REASON_USED
    return _REASONS.get(problem.key, _REASON_SLO)
