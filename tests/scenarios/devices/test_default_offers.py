"""Parts of devices are given out as installed: nothing is lent, and no feature gate is named."""

import contextlib

import pytest_asyncio
import yaml

from api import names, resources
from api.wire import durations
from cli.install import apply
from process.runtime import clock as clocks
from tests.planes import foundation, raw
from tests.planes.devices.device_recount import annotation
from tests.planes.install import plain
from tests.planes.processes import restarting
from tests.scenarios.devices.test_walkthroughs import EXAMPLE, NODE

PATIENCE = 60.0
WANTED = {
    "half-a-gpu": ({names.GPU: "50"}, "gpu"),
    "a-gpu": ({names.GPU: "100"}, "gpu"),
    "half-a-card": ({names.RDMA: "50"}, "rdma"),
    "an-fpga": ({names.FPGA: "100"}, "fpga"),
}
"""What pods ask for, and of which type they then have a device."""


@pytest_asyncio.fixture(loop_scope="session")
async def installed(plane, here, tmp_path):
    """The processes with the cluster settings of the chart, an unmodified scheduler and a node."""
    clock = clocks.SystemClock()
    shipped = plain.named(plain.documents("beside"), "ConfigMap", names.CONFIG_MAP_SLO)
    async with contextlib.AsyncExitStack() as stack:
        kube, access = await stack.enter_async_context(foundation.laid(plane, clock))
        stack.push_async_callback(cleared, here)
        await apply.one(kube, shipped)
        system = await stack.enter_async_context(restarting.running(access, tmp_path / "served"))
        await plane.start_scheduler(system.extender.url, filter_timeout_seconds=30)
        stack.push_async_callback(plane.stop_scheduler)
        await system.ready()
        await here.node("", name=NODE)
        yield here


async def cleared(here):
    """Leave the control plane as other tests expect it."""
    for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
        await here.api.call("DELETE", resource.path(name="koord-webhook"))
    await here.api.call("DELETE", resources.CONFIG_MAPS.path(names.NAMESPACE, names.CONFIG_MAP_SLO))
    for resource in (resources.NODE_METRICS, resources.NODE_SLOS, resources.DEVICES):
        await here.api.call("DELETE", resource.path(name=NODE))


async def reported(api):
    """Report the node as its agent does: its use, and its devices."""
    path = resources.NODE_METRICS.path(name=NODE)
    await api.wait_until(path, lambda found: found is not None, PATIENCE)
    status = {
        "updateTime": durations.moment(clocks.SystemClock().now()),
        "nodeMetric": {"nodeUsage": {"resources": {"cpu": "1", "memory": "1Gi"}}},
    }
    await api.patch(f"{path}/status", {"status": status})
    (device,) = yaml.safe_load_all(EXAMPLE.read_text())
    await api.post(resources.DEVICES.path(), device)


async def admitted(here, name, requests):
    """Create a pod that the webhook has changed; it may not be registered yet."""

    async def changed():
        asked = {"cpu": "100m", **requests}
        pod = await here.api.post(here.path("pods"), here.pod_body(name, requests=asked))
        if names.GPU_SHARED in pod["spec"]["containers"][0]["resources"]["requests"]:
            return pod
        await here.remove(name)
        return None

    return await raw.eventually(changed, PATIENCE)


async def test_pods_that_want_parts_of_devices_are_bound_as_installed(installed):
    here, api = installed, installed.api
    await reported(api)
    for name, (requests, _) in WANTED.items():
        if names.GPU in requests:
            await admitted(here, name, requests)
        else:
            await here.pod(name, requests={"cpu": "100m", **requests})
    for name, (_, kind) in WANTED.items():
        pod = await here.bound(name, PATIENCE)
        (one,) = annotation(pod, names.ANNOTATION_DEVICE_ALLOCATED)[kind]
        assert one["id"].startswith(f"{kind}-uuid-"), name
    node = await api.get(resources.NODES.path(name=NODE))
    assert names.BATCH_CPU not in node["status"]["allocatable"]
    assert node["metadata"]["annotations"][names.ANNOTATION_DEVICES_OFFERED] == "true"
