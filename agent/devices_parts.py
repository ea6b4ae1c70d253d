"""The parts that find out about devices and tell them; loaded only where a gate asks for them."""

import pathlib
from collections.abc import Collection
from typing import Final

from agent import devices_discovery, devices_latest, devices_object, objects
from agent import settings as agent_settings
from agent.observe import gpus, nvml, rdma, xpus
from api import durations, resources
from kube import client
from process import clock as clocks
from process import metrics

ACCELERATORS: Final = "Accelerators"
ADAPTERS: Final = "RDMADevices"
FOLDER: Final = "xpu-device-infos"


def collector(
    settings: agent_settings.Settings,
    enabled: Collection[str],
    figures: metrics.Registry,
    latest: devices_latest.Latest,
) -> devices_discovery.Collector:
    """Return who looks at the devices that the gates ask for."""
    chosen, sys = settings.devices, str(settings.host.sys)
    found = devices_discovery.Sources()
    if ACCELERATORS in enabled:
        found = devices_discovery.Sources(
            gpus=None if chosen.only_files else gpus.Gpus(sys, nvml.load),
            xpus=xpus.Folder(str(folder(settings))).discover,
        )
    if ADAPTERS in enabled:
        found = devices_discovery.Sources(found.gpus, found.xpus, lambda: rdma.discover(sys))
    discovery = devices_discovery.Discovery(found, chosen.interval_seconds)
    return devices_discovery.Collector(discovery, latest, settings.host.proc, figures)


def folder(settings: agent_settings.Settings) -> pathlib.Path:
    """Return where files describe accelerators."""
    return settings.devices.folder or settings.host.state / FOLDER


def own(
    settings: agent_settings.Settings,
    latest: devices_latest.Latest,
    node_uid: devices_latest.Identifier,
    kube: client.Client,
    clock: clocks.Clock,
) -> objects.Own:
    """Return who keeps the Device of this node."""
    name = settings.node_name

    def wanted(current: objects.Object | None) -> objects.Object | None:
        if latest.inventory is None:
            return None
        about = devices_object.About(name, node_uid(), durations.moment(clock.now()))
        told = devices_object.told(current, latest.inventory, about)
        latest.clashes = told.clashes
        return told.object

    place = objects.Place(resources.DEVICES, name, settings.devices.interval_seconds)
    return objects.Own(kube, clock, place, wanted)
