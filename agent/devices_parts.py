"""The parts that find out about devices and tell them; loaded only where a gate asks for them."""

from collections.abc import Collection
from typing import Final

from agent import devices_discovery, devices_latest, devices_object, objects
from agent import settings as agent_settings
from agent.observe import gpus, nvml, rdma, xpus
from api import durations
from kube import client
from process import clock as clocks
from process import metrics

ACCELERATORS: Final = "Accelerators"
ADAPTERS: Final = "RDMADevices"
FOLDER: Final = "xpu-device-infos"


def collector(
    host: agent_settings.HostSettings,
    chosen: agent_settings.DeviceSettings,
    enabled: Collection[str],
    figures: metrics.Registry,
    latest: devices_latest.Latest,
) -> devices_discovery.Collector:
    """Return who looks at the devices that the gates ask for."""
    sys, folder = str(host.sys), chosen.folder or host.state / FOLDER
    found = devices_discovery.Sources()
    if ACCELERATORS in enabled:
        found = devices_discovery.Sources(
            gpus=None if chosen.only_files else gpus.Gpus(sys, nvml.load),
            xpus=xpus.Folder(str(folder)).discover,
        )
    if ADAPTERS in enabled:
        found = devices_discovery.Sources(found.gpus, found.xpus, lambda: rdma.discover(sys))
    discovery = devices_discovery.Discovery(found, chosen.interval_seconds)
    return devices_discovery.Collector(discovery, latest, host.proc, figures)


def own(
    place: objects.Place,
    latest: devices_latest.Latest,
    node_uid: devices_latest.Identifier,
    kube: client.Client,
    clock: clocks.Clock,
) -> objects.Own:
    """Return who keeps the Device of this node."""

    def wanted(current: objects.Object | None) -> objects.Object | None:
        if latest.inventory is None:
            return None
        about = devices_object.About(place.name, node_uid(), durations.moment(clock.now()))
        told = devices_object.told(current, latest.inventory, about)
        latest.clashes = told.clashes
        return told.object

    return objects.Own(kube, clock, place, wanted)
