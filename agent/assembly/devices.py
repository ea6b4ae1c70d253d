"""The parts that find out about devices and tell them; loaded only where a gate asks for them."""

import logging
from collections.abc import Collection
from typing import Final

from agent import settings as agent_settings
from agent.devices import (
    device_discovery,
    device_object,
    gpus,
    latest_findings,
    nvml,
    rdma,
    vendor_files,
)
from agent.report import object_writer
from api.wire import durations
from kube.client import client
from process.runtime import clock as clocks
from process.runtime import metrics

_logger = logging.getLogger(__name__)
ACCELERATORS: Final = "Accelerators"
ADAPTERS: Final = "RDMADevices"
CHANGED: Final = "another client changed the Device; what the agent wrote there is set again"
FOLDER: Final = "xpu-device-infos"


def collector(
    host: agent_settings.HostSettings,
    chosen: agent_settings.DeviceSettings,
    enabled: Collection[str],
    figures: metrics.Registry,
    latest: latest_findings.Latest,
) -> device_discovery.Collector:
    """Return who looks at the devices that the gates ask for."""
    sys, folder = str(host.sys), chosen.folder or host.state / FOLDER
    found = device_discovery.Sources()
    if ACCELERATORS in enabled:
        found = device_discovery.Sources(
            gpus=None if chosen.only_files else gpus.Gpus(sys, nvml.load),
            xpus=vendor_files.Folder(str(folder)).discover,
        )
    if ADAPTERS in enabled:
        found = device_discovery.Sources(found.gpus, found.xpus, lambda: rdma.discover(sys))
    discovery = device_discovery.Discovery(found, chosen.interval_seconds)
    return device_discovery.Collector(discovery, latest, host.proc, figures)


class Keeper:
    """Says what the Device of this node should be, and notices when another client changed it."""

    def __init__(
        self,
        place: object_writer.Place,
        latest: latest_findings.Latest,
        node_uid: latest_findings.Identifier,
        clock: clocks.Clock,
    ) -> None:
        self._name = place.name
        self._latest = latest
        self._node_uid = node_uid
        self._clock = clock
        self._known: tuple[object, ...] = ()
        """The entries as they were and as they were to be, the last time."""

    def wanted(self, current: object_writer.Object | None) -> object_writer.Object | None:
        """Return the object as it should be, None before anything was found."""
        if self._latest.inventory is None:
            return None
        now = durations.moment(self._clock.now())
        about = device_object.About(self._name, self._node_uid(), now)
        told = device_object.told(current, self._latest.inventory, about)
        self._latest.clashes = told.clashes
        before, after = _listed(current), _listed(told.object)
        if self._known and before != after and before not in self._known:
            self._latest.clashes = (*told.clashes, CHANGED)
            _logger.warning("another client changed the Device node=%s", self._name)
        self._known = (before, after)
        return told.object


def own(
    place: object_writer.Place,
    latest: latest_findings.Latest,
    node_uid: latest_findings.Identifier,
    kube: client.Client,
    clock: clocks.Clock,
) -> object_writer.Own:
    """Return who keeps the Device of this node."""
    keeper = Keeper(place, latest, node_uid, clock)
    return object_writer.Own(kube, clock, place, keeper.wanted)


def _listed(current: object_writer.Object | None) -> object:
    return None if current is None else (current.get("spec") or {}).get("devices")
