"""What a node measures and reports only where a feature gate asks for it: the parts lists."""

from collections.abc import Callable, Collection
from typing import Protocol

import msgspec

from agent import (
    collectors,
    devices_latest,
    gates,
    kubelet_told,
    measured,
    objects,
    state,
    stated,
)
from agent import settings as agent_settings
from api import resources
from api.kubernetes import core
from kube.client import client
from process.runtime import clock as clocks
from process.runtime import metrics

DEVICES = frozenset({"Accelerators", "RDMADevices"})


class Asked(msgspec.Struct, frozen=True):
    """What the lists are made from."""

    settings: agent_settings.Settings
    enabled: Collection[str]
    """The feature gates that are on."""
    figures: metrics.Registry
    clock: clocks.Clock
    picture: Callable[[], state.NodeState | None]
    """Returns what was seen in the latest tick."""
    node: Callable[[], core.Node | None]
    """Returns the Node of this agent, None while it has not been seen."""
    kubelet: kubelet_told.KubeletTold
    """What the kubelet tells about cpus."""
    devices: devices_latest.Latest = msgspec.field(default_factory=devices_latest.Latest)
    """What was found of devices, by the sources for the objects and reports."""

    @property
    def with_devices(self) -> bool:
        """Whether any devices are looked for."""
        return not DEVICES.isdisjoint(self.enabled)


class Asking(collectors.Collector, Protocol):
    """A source that has to ask somebody first, in a task of its own."""

    async def run(self) -> None:
        """Ask for ever."""


def collectors_of(asked: Asked, also: Asking | None = None) -> tuple[collectors.Collector, ...]:
    """Return the sources that are looked at beside the ordinary ones."""
    found: list[collectors.Collector] = [stated.Stated(asked.figures)]
    found += measured.of(asked.settings.measure, asked.enabled, asked.figures)
    found += [also] if also is not None else []
    if asked.settings.measure.koordlet_names:
        from agent import koordlet_names  # noqa: PLC0415 - most dashboards are ours

        name, now = asked.settings.node_name, asked.clock.now()
        found.append(koordlet_names.Names(asked.figures, name, asked.picture, now).seen)
    if asked.settings.report.numa:
        from agent.observe import numa  # noqa: PLC0415 - some nodes tell nothing of this

        found.append(numa.Numa(str(asked.settings.host.proc), str(asked.settings.host.sys)))
    if asked.settings.kubelet.folder is not None:
        found.append(kubelet_told.Notes(asked.settings.kubelet.folder, asked.kubelet))
    if asked.with_devices:
        from agent import devices_parts  # noqa: PLC0415 - most nodes look for none

        found.append(
            devices_parts.collector(
                asked.settings.host,
                asked.settings.devices,
                asked.enabled,
                asked.figures,
                asked.devices,
            )
        )
    return tuple(found)


def summary_of(asked: Asked) -> Asking | None:
    """Return who asks the kubelet for what pods send, where it is to count."""
    if asked.settings.measure.network != "kubelet":
        return None
    from agent import kubelet_summary  # noqa: PLC0415 - few agents ask for this

    seconds = asked.settings.measure.network_seconds
    return kubelet_summary.Summary(asked.kubelet.ask, asked.clock, asked.figures, seconds)


def objects_of(asked: Asked, kube: client.Client) -> tuple[objects.Own, ...]:
    """Return the objects that are kept beside NodeMetric."""
    found = []
    if gates.NODE_TOPOLOGY_REPORT in asked.enabled:
        from agent import topology_parts  # noqa: PLC0415 - some nodes tell nothing of this

        name, seconds = asked.settings.node_name, asked.settings.tick_seconds
        found.append(topology_parts.own(kube, asked.clock, name, asked.picture, seconds))
    if asked.with_devices:
        from agent import devices_parts  # noqa: PLC0415 - most nodes look for none

        def uid() -> str:
            node = asked.node()
            return "" if node is None else node.metadata.uid

        seconds = asked.settings.devices.interval_seconds
        place = objects.Place(resources.DEVICES, asked.settings.node_name, seconds)
        found.append(devices_parts.own(place, asked.devices, uid, kube, asked.clock))
    return tuple(found)
