"""What a node measures and reports only where a feature gate asks for it: the parts lists."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol

import msgspec

from agent import settings as agent_settings
from agent.assembly import feature_gates, gated_collectors
from agent.devices import latest_findings
from agent.informers import pod_source
from agent.loop import ticks
from agent.model import state
from agent.observe import collectors
from agent.observe.cgroups import arrangement
from agent.observe.node import boot, kubelet_cpus
from agent.report import nri_figures, object_writer
from agent.store import time_series
from api import resources
from api.kubernetes import core
from kube.client import client
from process.http import health
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

if TYPE_CHECKING:
    from agent.assembly import nri
    from agent.observe import interference
    from agent.serve import pod_resources

DEVICES = frozenset({"Accelerators", "RDMADevices"})
POD_RESOURCES = "PodResourcesProxy"
_SIGNALS = frozenset({"PSICollector", "CPICollector"})


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
    kubelet: kubelet_cpus.KubeletTold
    """What the kubelet tells about cpus."""
    devices: latest_findings.Latest = msgspec.field(default_factory=latest_findings.Latest)
    """What was found of devices, by the sources for the objects and reports."""

    @property
    def with_devices(self) -> bool:
        """Whether any devices are looked for."""
        return not DEVICES.isdisjoint(self.enabled)


class Asking(collectors.Collector, Protocol):
    """A source that has to ask a server first, in a task of its own."""

    async def run(self) -> None:
        """Ask for ever."""


def interference_of(asked: Asked) -> "interference.Interference | None":
    """Return what looks for pods that others slow down, where a signal of that is collected."""
    if feature_gates.INTERFERENCE not in asked.enabled or _SIGNALS.isdisjoint(asked.enabled):
        return None
    from agent.observe import interference  # noqa: PLC0415 - 0.2 MiB, where no signal is collected

    return interference.Interference(asked.figures, asked.clock)


def collectors_of(
    asked: Asked,
    also: Asking | None = None,
    last: collectors.Collector | None = None,
) -> tuple[collectors.Collector, ...]:
    """Return the sources that are looked at beside the ordinary ones; `last` reads the others."""
    found: list[collectors.Collector] = [arrangement.Stated(asked.figures)]
    found += gated_collectors.of(asked.settings.measure, asked.enabled, asked.figures)
    found += [also] if also is not None else []
    if asked.settings.measure.koordlet_names:
        from agent.report import koordlet_metrics  # noqa: PLC0415 - 43 KiB

        name, now = asked.settings.node_name, asked.clock.now()
        found.append(koordlet_metrics.Names(asked.figures, name, asked.picture, now).seen)
    if asked.settings.report.numa:
        from agent.observe.node import numa_usage  # noqa: PLC0415 - 21 KiB

        found.append(numa_usage.Numa(str(asked.settings.host.proc), str(asked.settings.host.sys)))
    if asked.settings.kubelet.folder is not None:
        found.append(kubelet_cpus.Notes(asked.settings.kubelet.folder, asked.kubelet))
    if asked.with_devices:
        from agent.assembly import devices  # noqa: PLC0415 - 0.4 MiB, most nodes look for none

        found.append(
            devices.collector(
                asked.settings.host,
                asked.settings.devices,
                asked.enabled,
                asked.figures,
                asked.devices,
            )
        )
    found += [last] if last is not None else []
    return tuple(found)


def samples_of(asked: Asked) -> time_series.Histories:
    """Return where samples are kept: in memory, or the older ones on disk."""
    chosen = asked.settings.history
    if chosen.store == "memory":
        return time_series.Histories()
    from agent.store import disk_series  # noqa: PLC0415 - 2 MiB for SQLite, where it is asked for

    blocks = disk_series.Blocks(chosen.disk_folder or asked.settings.host.state)
    asked.figures.gauge(
        "koord_agent_history_disk_failing", "1 while older samples cannot be kept on disk."
    ).set_function(lambda: float(bool(blocks.problem)))
    most = (chosen.disk_mebibytes << 20) // disk_series.SAMPLE_BYTES
    made = time_series.Histories(most, most_samples=disk_series.MOST_SAMPLES, make=blocks.series)
    made.problem, made.close = lambda: blocks.problem, blocks.close
    return made


def runtime_of(asked: Asked, loop: ticks.Ticks, pods: pod_source.Source) -> "nri.Plugin | None":
    """Return what answers the container runtime, None where nothing may be written."""
    figures = nri_figures.Figures(asked.figures)
    chosen = asked.settings
    if not (chosen.nri.enable or chosen.hook_server.enable) or chosen.mode != "enforce":
        return None
    from agent.assembly import nri  # noqa: PLC0415 - 0.6 MiB, some agents only observe

    boot_id = boot.boot_id(str(chosen.host.proc))
    place = nri.Place(chosen.nri, chosen.hook_server, chosen.host, boot_id, asked.enabled)
    return nri.Plugin(place, loop, pods, asked.clock, figures)


def pod_resources_of(
    asked: Asked, pods: pod_source.Source, supervisor: supervise.Supervisor
) -> "pod_resources.Proxy | None":
    """Return who tells other programs which pod holds which device, where the gate is on."""
    if POD_RESOURCES not in asked.enabled:
        return None
    from agent.assembly import devices_of_pods  # noqa: PLC0415 - 7 MiB, on nodes with devices

    place = asked.settings.pod_resources
    sources = devices_of_pods.Sources(pods, asked.devices, asked.clock, asked.figures)
    return devices_of_pods.proxy(place, sources, supervisor)


def start_controllers(
    asked: Asked,
    samples: time_series.Histories,
    checks: health.Health,
    supervisor: supervise.Supervisor,
) -> None:
    """Start the controllers of other packages that the settings name."""
    names = asked.settings.controllers
    if not names:
        return
    from agent.assembly import controllers  # noqa: PLC0415 - 21 KiB, most agents run none

    given = controllers.Given(
        asked.settings.node_name, asked.clock, asked.picture, samples, asked.figures
    )
    controllers.start(names, given, checks, supervisor)


def summary_of(asked: Asked) -> Asking | None:
    """Return who asks the kubelet for what pods send, where it is to count."""
    if asked.settings.measure.network != "kubelet":
        return None
    from agent.observe.network import kubelet_summary  # noqa: PLC0415 - 75 KiB

    seconds = asked.settings.measure.network_seconds
    return kubelet_summary.Summary(asked.kubelet.ask, asked.clock, asked.figures, seconds)


def objects_of(asked: Asked, kube: client.Client) -> tuple[object_writer.Own, ...]:
    """Return the objects that are kept beside NodeMetric."""
    found = []
    if feature_gates.NODE_TOPOLOGY_REPORT in asked.enabled:
        from agent.assembly import topology  # noqa: PLC0415 - 58 KiB

        name, seconds = asked.settings.node_name, asked.settings.tick_seconds
        found.append(topology.own(kube, asked.clock, name, asked.picture, seconds))
    if asked.with_devices:
        from agent.assembly import devices  # noqa: PLC0415 - 0.4 MiB, most nodes look for none

        def uid() -> str:
            node = asked.node()
            return "" if node is None else node.metadata.uid

        seconds = asked.settings.devices.interval_seconds
        place = object_writer.Place(resources.DEVICES, asked.settings.node_name, seconds)
        found.append(devices.own(place, asked.devices, uid, kube, asked.clock))
    return tuple(found)
