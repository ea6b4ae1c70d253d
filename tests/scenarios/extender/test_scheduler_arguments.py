"""Arguments of a scheduler plug-in are changed while pods wait: refused, taken, and seen to act."""

import contextlib

import aiohttp
import pytest_asyncio
import yaml

from api import names, resources
from api.wire import durations
from cli.dev import all_in_one
from process.runtime import clock as clocks
from tests.planes import foundation, raw

PATIENCE = 60.0
LOAD = "LoadAwareScheduling"
MAP = resources.CONFIG_MAPS.path(names.NAMESPACE, names.CONFIG_MAP_SCHEDULER)
FIELD = "profiles[0].pluginConfig[0].args.usageThresholds.cpu"


class Tuned:
    """A busy node, the processes, and the hand of an administrator."""

    def __init__(self, here, running):
        self.here = here
        self.api = here.api
        self.running = running

    async def report(self, node, cpu, memory):
        """What the agent of a node writes once a minute."""
        metric = resources.NODE_METRICS.path(name=node)
        await self.api.wait_until(metric, lambda found: found is not None, PATIENCE)
        usage = {"resources": {"cpu": cpu, "memory": memory}}
        status = {
            "updateTime": durations.moment(clocks.SystemClock().now()),
            "nodeMetric": {"nodeUsage": usage},
        }
        await self.api.patch(f"{metric}/status", {"status": status})

    async def write(self, percent, *, tried=False):
        """Write the threshold of cpu as an administrator does; returns the answer."""
        entry = {"name": LOAD, "args": {"usageThresholds": {"cpu": percent}}}
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "koord-scheduler", "pluginConfig": [entry]}],
        }
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.CONFIG_MAP_SCHEDULER},
            "data": {names.CONFIG_MAP_SCHEDULER: yaml.safe_dump(document)},
        }
        query = {"fieldManager": "admin", "force": "true", **({"dryRun": "All"} if tried else {})}
        return await self.api.call("PATCH", MAP, body, query=query, kind=raw.APPLY_PATCH)

    async def refused(self, percent):
        """Wait until the API server asks the webhook; returns the refusal of a bad threshold."""

        async def asked():
            answer = await self.write(percent, tried=True)
            return answer if answer.status >= 400 else None

        return await raw.eventually(asked, PATIENCE)

    async def page(self, path):
        url = f"{self.running.extender.health_url}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return await answer.json()


@pytest_asyncio.fixture(loop_scope="session")
async def tuned(plane, here, tmp_path):
    clock = clocks.SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        _, access = await stack.enter_async_context(foundation.laid(plane, clock))
        stack.push_async_callback(cleared, here)
        running = await stack.enter_async_context(
            all_in_one.running(all_in_one.Options(tmp_path / "served"), access=access, clock=clock)
        )
        await plane.start_scheduler(running.extender.url, filter_timeout_seconds=30)
        stack.push_async_callback(plane.stop_scheduler)
        yield Tuned(here, running)


async def cleared(here):
    """Leave the control plane as other tests expect it."""
    for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
        await here.api.call("DELETE", resource.path(name="koord-webhook"))
    await here.api.call("DELETE", MAP)
    for name in here.nodes:
        for resource in (resources.NODE_METRICS, resources.NODE_SLOS):
            await here.api.call("DELETE", resource.path(name=name))


async def test_a_higher_threshold_lets_a_refused_pod_in_without_a_restart(tuned):
    here = tuned.here
    node = await here.node("busy", cpu="10", memory="64Gi")
    await tuned.report(node, "7", "8Gi")
    await here.pod("web", requests={"cpu": "1"})
    reason = "node cpu usage exceeds the load-aware threshold"
    await here.refused("web", reason, timeout=PATIENCE)
    before = await tuned.page(f"/debug/plugins/{LOAD}?node={node}&pod={here.namespace}/web")
    assert before["arguments"]["usageThresholds"] == {"cpu": 65, "memory": 95}
    assert before["argumentsFrom"] == "settings"
    assert before["pod"]["nodesRefusedHere"] == {reason: 1}
    assert before["lastRefusals"][0]["pod"] == f"{here.namespace}/web"

    refusal = await tuned.refused(190)
    assert f"{FIELD}: is 190, must be at most 100; correct it or leave it out" in refusal.message

    assert (await tuned.write(90)).status in (200, 201)
    bound = await here.bound("web", PATIENCE)
    assert bound["spec"]["nodeName"] == node
    after = await tuned.page(f"/debug/plugins/{LOAD}?node={node}")
    assert after["arguments"]["usageThresholds"] == {"cpu": 90}
    assert after["argumentsFrom"] == f"ConfigMap {names.CONFIG_MAP_SCHEDULER}"
    assert f"{here.namespace}/web" in {pod["pod"] for pod in after["node"]["figures"]["pods"]}
