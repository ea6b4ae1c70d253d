"""Keeps the settings of the cluster as its configuration map says, or said when it last did."""

from collections.abc import Callable
from typing import Final

import msgspec

from api import configuration, core, resources
from kube import controller, store
from manager import apply, cluster, plan
from manager.plans import cluster_settings
from process import metrics

_REASON_SLO: Final = "SLOCfgUnmarshalFailed"
_REASONS: Final = {
    configuration.COLOCATION: "ColocationCfgUnmarshalFailed",
    configuration.CPU_NORMALIZATION: "CPUNormalizationCfgUnmarshalFailed",
    configuration.RESOURCE_AMPLIFICATION: "ResourceAmplificationCfgUnmarshalFailed",
}
_REASON_ENTRY: Final = "EntryIgnored"


class View(msgspec.Struct, frozen=True, gc=False):
    """A configuration map, without the rest of its metadata."""

    uid: str
    data: dict[str, str]


def view(raw: core.ConfigMap) -> View:
    """Project a configuration map."""
    return View(raw.metadata.uid, raw.data)


class Settings:
    """The present settings, and whoever wants to know that they changed."""

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
        self._current: cluster.ClusterSettings | None = None
        self._kept = registry.gauge(
            "koord_manager_settings_refused",
            "1 while a key of the configuration map is unreadable and keeps what it said before.",
            ("key",),
        )

    def current(self) -> cluster.ClusterSettings | None:
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
        for name in cluster.DEFAULTS:
            refused = any(problem.kept for problem in reading.problems if problem.key == name)
            self._kept.labels(name).set(int(refused))
        if changed:
            self._changed()
        return await self._writer.carry_out(_told(key, found, reading, changed=changed))


def _told(
    key: str, found: View | None, reading: cluster_settings.Reading, *, changed: bool
) -> plan.Plan:
    namespace, _, name = key.partition("/")
    steps = tuple(
        plan.Tell(
            resources.CONFIG_MAPS,
            name,
            found.uid if found is not None else "",
            _reason(problem),
            problem.note,
            warning=True,
            namespace=namespace,
        )
        for problem in reading.problems
    )
    state = "settings read" if changed else "settings unchanged"
    if found is None:
        state = "no configuration map yet; the defaults hold"
    notes = "; ".join(problem.note for problem in reading.problems)
    return plan.Plan(f"{state}; {notes}" if notes else state, steps)


def _reason(problem: cluster_settings.Problem) -> str:
    if not problem.kept:
        return _REASON_ENTRY
    return _REASONS.get(problem.key, _REASON_SLO)
