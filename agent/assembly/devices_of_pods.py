"""The PodResources API of the agent, put together; loaded only where its gate is on."""

import msgspec

from agent import settings as agent_settings
from agent.devices import latest_findings
from agent.informers import fresh_pods, pod_source
from agent.report import pod_resources_figures
from agent.serve import pod_devices, pod_resources
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


class Sources(msgspec.Struct, frozen=True):
    """Where pods and devices are known from, and where is told what was answered."""

    pods: pod_source.Source
    devices: latest_findings.Latest
    clock: clocks.Clock
    figures: metrics.Registry


def proxy(
    chosen: agent_settings.PodResourcesSettings,
    sources: Sources,
    supervisor: supervise.Supervisor,
) -> pod_resources.Proxy:
    """Return who serves the API."""
    place = pod_resources.Place(chosen.kubelet_socket, chosen.socket)
    pods = fresh_pods.FreshPods(sources.pods, sources.clock)
    made = pod_resources.Proxy(place, pods, sources.devices, sources.clock, supervisor.spawn)
    figures = pod_resources_figures.Figures(
        sources.figures, pod_resources.COUNTED, pod_devices.RESOURCES.values()
    )
    figures.show(lambda: made.listening)
    made.counted, made.added = figures.counted, figures.added
    return made
