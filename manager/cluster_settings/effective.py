"""Everything that is configured for the cluster, and what of it holds on one node."""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from api import names
from api.koordinator.metadata import annotations as payloads
from api.koordinator.settings import configuration, layers
from api.kubernetes import meta, selectors
from api.wire import base
from domain.cluster_settings import node_slo
from manager.cluster_settings import strategy

R = TypeVar("R")

_LONGEST: Final = 63
BANDWIDTH: Final = "totalNetworkBandwidth"
LABELS: Final = {
    names.LABEL_CPU_RECLAIM_RATIO: "cpuReclaimThresholdPercent",
    names.LABEL_MEMORY_RECLAIM_RATIO: "memoryReclaimThresholdPercent",
    names.LABEL_MID_CPU_RESERVED_RATIO: "midStaticCPUReservedPercent",
    names.LABEL_MID_MEMORY_RESERVED_RATIO: "midStaticMemoryReservedPercent",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """Settings of some nodes, complete with everything they inherit."""

    selector: meta.LabelSelector
    values: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """The settings under one key."""

    cluster: Mapping[str, Any]
    entries: tuple[Entry, ...] = ()

    def of(self, labels: Mapping[str, str]) -> Mapping[str, Any]:
        """Return what holds on a node: the first entry that matches, else the cluster's."""
        for entry in self.entries:
            if selectors.matches(entry.selector, labels):
                return entry.values
        return self.cluster


DEFAULTS: Final[Mapping[str, Section]] = {
    configuration.COLOCATION: Section(strategy.DEFAULT),
    configuration.RESOURCE_THRESHOLD: Section(node_slo.THRESHOLDS),
    configuration.RESOURCE_QOS: Section({}),
    configuration.CPU_BURST: Section(node_slo.BURST),
    configuration.SYSTEM: Section(node_slo.SYSTEM),
    configuration.HOST_APPLICATION: Section({"applications": []}),
    configuration.POD_OVERRIDE_LIMITS: Section({}),
    configuration.CPU_NORMALIZATION: Section({"enable": False}),
    configuration.RESOURCE_AMPLIFICATION: Section({"enable": False}),
}


PARTS: Final[Mapping[str, str]] = {
    configuration.RESOURCE_THRESHOLD: "resourceUsedThresholdWithBE",
    configuration.RESOURCE_QOS: "resourceQOSStrategy",
    configuration.CPU_BURST: "cpuBurstStrategy",
    configuration.SYSTEM: "systemStrategy",
    configuration.HOST_APPLICATION: "hostApplications",
    configuration.POD_OVERRIDE_LIMITS: "podOverrideLimits",
}
"""The part of a NodeSLO that each key fills."""


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Everything that is configured for the cluster."""

    sections: Mapping[str, Section]
    available: bool = True
    """False until colocation settings were readable once; until then nothing is decided."""
    doubtful: bool = False
    """Whether the present colocation settings are not what the configuration map says."""
    unread: frozenset[str] = frozenset()
    """Keys that are bad and were never readable, so that it is unknown what they should say."""
    _read: dict[int, Any] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    """What was read before, by the identity of the settings that it was read from."""

    def merged(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
        """Return the colocation strategy of a node: settings, then annotation, then labels."""
        merged = dict(self.sections[configuration.COLOCATION].of(labels))
        return self._adjusted(merged, labels, annotations)

    def rules(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> strategy.Strategy:
        """Return the same, read; most nodes share the strategy of their section."""
        values = self.sections[configuration.COLOCATION].of(labels)
        if names.ANNOTATION_COLOCATION_STRATEGY in annotations or not LABELS.keys().isdisjoint(
            labels
        ):
            return strategy.read(self._adjusted(dict(values), labels, annotations))
        return self._once(strategy.read, values)

    def _once(self, read: Callable[[Mapping[str, Any]], R], values: Mapping[str, Any]) -> R:
        known: R | None = self._read.get(id(values))
        if known is None:
            known = self._read[id(values)] = read(values)
        return known

    def _adjusted(
        self, merged: dict[str, Any], labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> dict[str, Any]:
        # One that cannot be read changes nothing; `unreadable` says why.
        with contextlib.suppress(base.ReadError):
            written = payloads.COLOCATION_STRATEGY.read(annotations)
            merged = layers.merge(merged, written.wire() if written else {})
        for label, field in LABELS.items():
            percent = _percent(labels[label]) if label in labels else None
            if percent is not None:
                merged[field] = percent
        return merged

    @property
    def colocation_enabled(self) -> bool:
        """Whether colocation is on at all; an entry cannot turn it on alone."""
        return bool(self.sections[configuration.COLOCATION].cluster["enable"])

    def parts(self, labels: Mapping[str, str]) -> strategy.Parts:
        """Return what a node enforces."""
        applications = self.sections[configuration.HOST_APPLICATION].of(labels)["applications"]
        return strategy.Parts(
            threshold=self.sections[configuration.RESOURCE_THRESHOLD].of(labels),
            qos=self.sections[configuration.RESOURCE_QOS].of(labels),
            burst=self.sections[configuration.CPU_BURST].of(labels),
            system=self.sections[configuration.SYSTEM].of(labels),
            host_applications=tuple(applications),
            overrides=self.sections[configuration.POD_OVERRIDE_LIMITS].of(labels),
            unread=frozenset(PARTS[key] for key in self.unread if key in PARTS),
        )

    def normalization(self, labels: Mapping[str, str]) -> strategy.Normalization | None:
        """Return how the cpu of a node is normalized; None while the key was never readable."""
        if configuration.CPU_NORMALIZATION in self.unread:
            return None
        values = self.sections[configuration.CPU_NORMALIZATION].of(labels)
        return self._once(strategy.read_normalization, values)

    def amplification(self, labels: Mapping[str, str]) -> strategy.Amplification | None:
        """Return how a node is amplified; None while the key was never readable."""
        if configuration.RESOURCE_AMPLIFICATION in self.unread:
            return None
        values = self.sections[configuration.RESOURCE_AMPLIFICATION].of(labels)
        return self._once(strategy.read_amplification, values)


def unreadable(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Say what of a node's own settings is ignored because it cannot be read; empty for nothing."""
    found = [
        f"label {label}: {labels[label][:_LONGEST]!r} is no ratio"
        for label in LABELS
        if label in labels and _percent(labels[label]) is None
    ]
    try:
        payloads.COLOCATION_STRATEGY.read(annotations)
    except base.ReadError as error:
        found.append(str(error))
    return "; ".join(found)


def _percent(written: str) -> int | None:
    try:
        ratio = float(written)
    except ValueError:
        return None
    return int(ratio * 100) if ratio >= 0 and math.isfinite(ratio) else None


def usable(settings: ClusterSettings | None) -> ClusterSettings | None:
    """Return settings that may be decided by, None while there are none."""
    return settings if settings is not None and settings.available else None
