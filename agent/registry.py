"""What a node measures and reports only where a feature gate asks for it: the parts lists."""

import dataclasses
from collections.abc import Callable, Collection

from agent import collectors, devices_latest, measured, objects, stated
from agent import settings as agent_settings
from api import core
from kube import client
from process import clock as clocks
from process import metrics

DEVICES = frozenset({"Accelerators", "RDMADevices"})


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """What the lists are made from."""

    settings: agent_settings.Settings
    enabled: Collection[str]
    """The feature gates that are on."""
    figures: metrics.Registry
    clock: clocks.Clock
    node: Callable[[], core.Node | None]
    """Returns the Node of this agent, None while it has not been seen."""
    devices: devices_latest.Latest = dataclasses.field(default_factory=devices_latest.Latest)
    """What was found of devices, by the sources for the objects and reports."""

    @property
    def with_devices(self) -> bool:
        """Whether any devices are looked for."""
        return not DEVICES.isdisjoint(self.enabled)


def collectors_of(asked: Asked) -> tuple[collectors.Collector, ...]:
    """Return the sources that are looked at beside the ordinary ones."""
    found: list[collectors.Collector] = [stated.Stated(asked.figures)]
    found += measured.of(asked.settings, asked.enabled, asked.figures)
    if asked.with_devices:
        from agent import devices_parts  # noqa: PLC0415 - most nodes look for none

        found.append(
            devices_parts.collector(asked.settings, asked.enabled, asked.figures, asked.devices)
        )
    return tuple(found)


def objects_of(asked: Asked, kube: client.Client) -> tuple[objects.Own, ...]:
    """Return the objects that are kept beside NodeMetric."""
    found = []
    if asked.with_devices:
        from agent import devices_parts  # noqa: PLC0415 - most nodes look for none

        def uid() -> str:
            node = asked.node()
            return "" if node is None else node.metadata.uid

        found.append(devices_parts.own(asked.settings, asked.devices, uid, kube, asked.clock))
    return tuple(found)
