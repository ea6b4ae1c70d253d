"""From what was measured to which pod may use which core, with every figure worked out by hand.

Three nodes whose agents have reported, settings with an exception for one of them, a profile, and
batch pods of which each fits on one node only.
"""

import contextlib
import json

import aiohttp
import pytest_asyncio

from api import names, resources
from api.wire import durations
from cli.dev import all_in_one
from cli.install import apply
from process.runtime import clock as clocks
from tests.planes import foundation, raw

PATIENCE = 60.0
GIB = 1 << 30
GOLD = {"colocation-loop": "gold"}
THRESHOLDS = "resource-threshold-config"
# 256 GiB less 35 %, cut to whole bytes.
RECLAIMABLE = 274_877_906_944 - 96_207_267_430
LENT = {
    # 64 cores - 25.6 (40 %) - 3 of the system - 10 of the shop; memory - 12 GiB - 20 GiB.
    "a": (25_400, RECLAIMABLE - 32 * GIB),
    # 64 cores - 25.6 - 23 of the system; memory - 12 GiB.
    "b": (15_400, RECLAIMABLE - 12 * GIB),
    # 30 % of (128 cores - 80 requested); memory - 12 GiB - 64 GiB requested and not measured yet.
    "gold": (14_400, RECLAIMABLE - 76 * GIB),
}
# Each fits on the node that is named only, once those before it are placed; the last on none.
PLACED = {"twenty": ("20", "a"), "fifteen": ("15", "b"), "fourteen": ("14", "gold")}
SETTINGS = {
    "colocation-config": {
        "enable": True,
        "cpuReclaimThresholdPercent": 60,
        "memoryReclaimThresholdPercent": 65,
        "nodeConfigs": [
            {
                "name": "gold",
                "nodeSelector": {"matchLabels": GOLD},
                "cpuCalculatePolicy": "overcommitRatio",
                "overcommitPercent": 30,
            }
        ],
    },
    THRESHOLDS: {
        "clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 60},
        "nodeStrategies": [
            {
                "name": "gold",
                "nodeSelector": {"matchLabels": GOLD},
                "cpuSuppressThresholdPercent": 75,
            }
        ],
    },
}
GPU = {
    "type": "gpu",
    "minor": 0,
    "health": True,
    "resources": {names.GPU_CORE: "100", names.GPU_MEMORY_RATIO: "100", names.GPU_MEMORY: "80Gi"},
}


class Loop:
    """The three processes, three nodes and the hands of their agents and users."""

    def __init__(self, here, running):
        self.here = here
        self.api = here.api
        self.running = running

    async def report(self, node, cpu, memory, **pods):
        """What an agent writes once a minute: use outside pods, of pods and of the node."""
        metric = resources.NODE_METRICS.path(name=node)
        await self.api.wait_until(metric, lambda found: found is not None, PATIENCE)
        amounts = {"cpu": cpu, "memory": memory}
        measured = [
            {"namespace": self.here.namespace, "name": name, "priority": "koord-prod",
             "podUsage": {"resources": {"cpu": used[0], "memory": used[1]}}}
            for name, used in pods.items()
        ]  # fmt: skip
        status = {
            "updateTime": durations.moment(clocks.SystemClock().now()),
            "nodeMetric": {
                "nodeUsage": {"resources": amounts},
                "systemUsage": {"resources": amounts},
            },
            "podsMetric": measured,
        }
        await self.api.patch(f"{metric}/status", {"status": status})

    async def lends(self, node, cpu, memory):
        """Wait until a node offers exactly this, in capacity as in allocatable."""
        wanted = {names.BATCH_CPU: cpu, names.BATCH_MEMORY: memory}

        def offered(found):
            return all(
                {name: _whole(part.get(name)) for name in wanted} == wanted
                for part in (found["status"]["capacity"], found["status"]["allocatable"])
            )

        return await self.api.wait_until(resources.NODES.path(name=node), offered, PATIENCE)

    async def batch(self, name, cores):
        """Create a pod that the profile turns into a batch pod, once the profile is known."""

        async def changed():
            body = self.here.pod_body(
                name, requests={"cpu": cores, "memory": "1Gi"}, labels={"app": "loop"}
            )
            pod = await self.api.post(self.here.path("pods"), body)
            if pod["spec"].get("priorityClassName") == "koord-batch":
                return pod
            await self.here.remove(name)
            return None

        return await raw.eventually(changed, PATIENCE)

    async def page(self, node):
        url = f"{self.running.manager.health_url}/debug/nodes/{node}"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return await answer.json()


def _whole(written):
    # Both control planes answer such figures in canonical form.
    units = {"k": 1000, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": GIB}
    for suffix, factor in sorted(units.items(), reverse=True):
        if written and written.endswith(suffix):
            return int(written.removesuffix(suffix)) * factor
    return int(written or 0)


@pytest_asyncio.fixture(loop_scope="session")
async def loop(plane, here, tmp_path):
    clock, folder = clocks.SystemClock(), tmp_path / "served"
    async with contextlib.AsyncExitStack() as stack:
        kube, access = await stack.enter_async_context(foundation.laid(plane, clock))
        stack.push_async_callback(cleared, here)
        await apply.one(kube, settings())
        await apply.one(kube, profile(here))
        running = await stack.enter_async_context(
            all_in_one.running(all_in_one.Options(folder), access=access, clock=clock)
        )
        await plane.start_scheduler(running.extender.url, filter_timeout_seconds=30)
        stack.push_async_callback(plane.stop_scheduler)
        yield Loop(here, running)


async def cleared(here):
    """Leave the control plane as other tests expect it."""
    for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
        await here.api.call("DELETE", resource.path(name="koord-webhook"))
    await here.api.call("DELETE", resources.COLOCATION_PROFILES.path(name=here.id))
    await here.api.call("DELETE", resources.CONFIG_MAPS.path(names.NAMESPACE, names.CONFIG_MAP_SLO))
    for name in here.nodes:
        for resource in (resources.NODE_METRICS, resources.NODE_SLOS, resources.DEVICES):
            await here.api.call("DELETE", resource.path(name=name))


def settings():
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.CONFIG_MAP_SLO, "namespace": names.NAMESPACE},
        "data": {key: json.dumps(value) for key, value in SETTINGS.items()},
    }


def profile(here):
    return {
        "apiVersion": resources.COLOCATION_PROFILES.api_version,
        "kind": resources.COLOCATION_PROFILES.kind,
        "metadata": {"name": here.id},
        "spec": {
            "namespaceSelector": {"matchLabels": {names.LABEL_NAMESPACE_NAME: here.namespace}},
            "selector": {"matchLabels": {"app": "loop"}},
            "qosClass": "BE",
            "priorityClassName": "koord-batch",
        },
    }


async def test_every_figure_from_report_to_placement(loop):
    here, api = loop.here, loop.api
    machines = {"cpu": "64", "memory": "256Gi"}
    nodes = {"a": await here.node("a", **machines)}
    wires = {names.ANNOTATION_NETWORK_BANDWIDTH: "1G"}
    nodes["b"] = await here.node("b", annotations=wires, **machines)
    nodes["gold"] = await here.node("gold", labels=GOLD, cpu="128", memory="256Gi")
    await here.pod("shop", requests={"cpu": "20", "memory": "40Gi"}, nodeName=nodes["a"])
    await here.pod("web", requests={"cpu": "80", "memory": "64Gi"}, nodeName=nodes["gold"])
    device = {"apiVersion": resources.DEVICES.api_version, "kind": resources.DEVICES.kind}
    meta = {"name": nodes["b"], "labels": {names.LABEL_GPU_MODEL: "a100"}}
    await api.post(
        resources.DEVICES.path(), {**device, "metadata": meta, "spec": {"devices": [GPU]}}
    )

    await loop.report(nodes["a"], "3", "12Gi", shop=("10", "20Gi"))
    await loop.report(nodes["b"], "23", "12Gi")
    await loop.report(nodes["gold"], "2", "12Gi")
    for name, amounts in LENT.items():
        found = await loop.lends(nodes[name], *amounts)
        annotations = found["metadata"]["annotations"]
        assert annotations[names.ANNOTATION_CPU_NORMALIZATION] == "1.00"
    path = resources.NODES.path(name=nodes["b"])
    found = await api.wait_until(path, lambda n: names.GPU in n["status"]["allocatable"], PATIENCE)
    assert found["metadata"]["labels"][names.LABEL_GPU_MODEL] == "a100"
    assert found["status"]["capacity"][names.GPU] == "100"

    assert _whole(found["status"]["allocatable"][names.NETWORK_BANDWIDTH]) == 10**9

    for name, percent in (("a", 60), ("gold", 75)):
        path = resources.NODE_SLOS.path(name=nodes[name])
        slo = await api.wait_until(path, lambda found: found is not None, PATIENCE)
        enforced = slo["spec"]["resourceUsedThresholdWithBE"]
        assert (enforced["enable"], enforced["cpuSuppressThresholdPercent"]) == (True, percent)

    path = resources.NODE_SLOS.path(name=nodes["b"])
    slo = await api.wait_until(path, lambda found: found is not None, PATIENCE)
    assert slo["spec"]["systemStrategy"]["totalNetworkBandwidth"] == "1G"

    said = await loop.page(nodes["gold"])
    assert "14.4 cores (30 % of 128 allocatable - 80 requested)" in said["sentence"]

    for name, (cores, wanted) in PLACED.items():
        made = await loop.batch(name, cores)
        asked = made["spec"]["containers"][0]["resources"]["requests"]
        assert asked == {names.BATCH_CPU: f"{cores}k", names.BATCH_MEMORY: "1Gi"}
        bound = await here.bound(name, PATIENCE)
        assert bound["spec"]["nodeName"] == nodes[wanted]
    await loop.batch("ten", "10")
    await here.refused("ten", f"Insufficient {names.BATCH_CPU}", timeout=PATIENCE)

    # The shop is quiet now, so node a lends what the waiting pod needs: 64 - 25.6 - 3 - 5.
    await loop.report(nodes["a"], "3", "12Gi", shop=("5", "20Gi"))
    await loop.lends(nodes["a"], 30_400, LENT["a"][1])
    assert (await here.bound("ten", PATIENCE))["spec"]["nodeName"] == nodes["a"]

    # Bandwidth that one pod requests is not promised to another.
    for name in ("stream", "film"):
        await here.pod(name, requests={names.NETWORK_BANDWIDTH: "600M"})
        if name == "stream":
            assert (await here.bound(name, PATIENCE))["spec"]["nodeName"] == nodes["b"]
    await here.refused("film", f"Insufficient {names.NETWORK_BANDWIDTH}", timeout=PATIENCE)
