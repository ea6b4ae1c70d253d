"""An extender is killed while pods leave for CPUs: the pod starts, and no others leave.

A pod needs the CPUs of two others, so that two evictions follow each other. The process dies
before or after the first of them, or at the note on the pod; what starts afterwards finishes it.
The pod changes just before that one notes its plan, as when kube-scheduler writes a condition then.
"""

import asyncio
import json

import aiohttp
import pytest

from api import names
from process.runtime import supervise
from tests.planes import raw
from tests.planes.devices import device_floor
from tests.planes.stage import PATIENCE

PLUGINS = {
    "enabled": ["NodeNUMAResource", "DeviceShare", "ElasticQuota"],
    "weights": {"NodeNUMAResource": 1, "DeviceShare": 1},
}
FLAGS = tuple(f"--plugins.{name}={json.dumps(value)}" for name, value in PLUGINS.items())
FULL, SPREAD = "FullPCPUs", "SpreadByPCPUs"
pytestmark = pytest.mark.timeout(120)


def noted(call):
    """Whether a plan is noted; not where kube-scheduler has changed the pod at that moment."""
    is_note = call.method == "PATCH" and b"koord.sh/preemption" in call.body
    return is_note and call.status != 409


def evicted(call):
    return call.path.endswith("/eviction") and b"dryRun" not in call.body


POINTS = {
    "before the note": ("before", noted, 1),
    "after the note": ("after", noted, 1),
    "before the first eviction": ("before", evicted, 1),
    "after the first eviction": ("after", evicted, 1),
    "before the second eviction": ("before", evicted, 2),
    "after the second eviction": ("after", evicted, 2),
}


async def exclusive(stage, name, cpus, bind, **more):
    notes = {device_floor.SPEC: json.dumps({"requiredCPUBindPolicy": bind})}
    await stage.pod(
        name,
        requests={"cpu": str(cpus), "memory": "1Gi"},
        annotations=notes,
        labels={names.LABEL_QOS: "LSR"},
        terminationGracePeriodSeconds=30,
        **more,
    )


def changing(stage):
    """Change the pod as its first note arrives, so that the API server answers with a conflict."""
    once = iter(["changed"])

    async def change(call):
        if noted(call) and next(once, ""):
            notes = {"metadata": {"annotations": {"example.com/changed": "once"}}}
            await stage.api.patch(stage.path("pods", "high"), notes)

    return change


class Pods:
    """Eight cores that have lost one CPU each to as many pods, and who leaves of them."""

    def __init__(self, stage):
        self.stage = stage
        self.names = [f"low-{number}" for number in range(8)]
        self.left = set()

    async def fill(self):
        for name in self.names:
            await exclusive(self.stage, name, 1, SPREAD)
            await self.stage.bound(name, PATIENCE)

    async def runs(self):
        """Let all of them be Running and Ready, as their kubelet says it."""
        ready = [{"type": "Ready", "status": "True"}]
        body = {"status": {"phase": "Running", "conditions": ready}}
        for name in self.names:
            path = self.stage.path("pods", name, "status")
            await self.stage.api.patch(path, body, kind=raw.STRATEGIC_PATCH)

    async def reap(self):
        """Be the kubelet: end pods that are leaving, a moment later."""
        while True:
            pods = (await self.stage.api.get(self.stage.path("pods")))["items"]
            for pod in pods:
                name = pod["metadata"]["name"]
                if "deletionTimestamp" in pod["metadata"] and name in self.names:
                    self.left.add(name)
                    await self.stage.remove(name)
            await asyncio.sleep(0.3)


def stopping(pair, side, matches, number):
    """Hold a call of the extender; return when it is reached, and when the process is gone."""
    reached, gone, left = asyncio.Event(), asyncio.Event(), number

    async def hold(call):
        nonlocal left
        if reached.is_set() or not matches(call):
            return
        left -= 1
        if left == 0:
            reached.set()
            await gone.wait()
            raise aiohttp.ClientConnectionError("the process is gone")

    setattr(pair.uplink, side, hold)
    return reached, gone


async def killed(pair, reached, gone):
    """Kill the extender where it is held."""
    await asyncio.wait_for(reached.wait(), PATIENCE)
    await pair.extender.kill()
    gone.set()
    pair.uplink.hang_up()
    pair.uplink.reset()


@pytest.mark.parametrize(("side", "matches", "number"), POINTS.values(), ids=POINTS)
async def test_two_leave_and_the_pod_starts(stage, side, matches, number):
    pair = await stage.pair("a", *FLAGS)
    floor = device_floor.Floor(stage, pair.extender.page)
    await floor.machine("pair")
    await pair.schedule(bind_timeout_seconds=3)
    pods = Pods(stage)
    await pods.fill()
    held = stopping(pair, side, matches, number)
    try:
        async with stage.priority(1000) as important, supervise.Supervisor("kubelet") as kubelet:
            kubelet.start("kubelet", pods.reap)
            await exclusive(stage, "high", 4, FULL, priorityClassName=important)
            await killed(pair, *held)
            pair.uplink.before = changing(stage)
            # A pod of lower priority finds the place that is becoming free kept for the first.
            await exclusive(stage, "thief", 2, FULL)
            await pair.extender.start()
            await pair.extender.ready()
            high = await stage.bound("high", PATIENCE)
            status = json.loads(high["metadata"]["annotations"][names.ANNOTATION_RESOURCE_STATUS])
            assert status["cpuset"]
            await stage.refused("thief", "not enough cpus", timeout=PATIENCE)
            assert len(pods.left) == 2, pods.left
            await floor.agree()

            async def nobody():
                return await pair.extender.figure("koord_extender_preemptors") == 0

            await raw.eventually(nobody, PATIENCE)
            assert len(pods.left) == 2, "nobody else leaves afterwards"
    finally:
        await floor.remove()


async def guarded(stage, least):
    """Create a disruption budget over all pods, and wait until its controller has counted it."""
    selector = {"matchLabels": {names.LABEL_QOS: "LSR"}}
    body = {"metadata": {"name": "all"}, "spec": {"minAvailable": least, "selector": selector}}
    path = stage.path("poddisruptionbudgets", group="policy/v1")
    await stage.api.post(path, body)

    async def counted():
        status = (await stage.api.get(f"{path}/all")).get("status", {})
        return status.get("currentHealthy", 0) >= least - 1

    await raw.eventually(counted, PATIENCE)
    return f"{path}/all"


async def test_a_budget_that_then_refuses_the_second_one_takes_no_place_away(stage):
    """The first has left by then: its place stays kept while the budget is asked again."""
    pair = await stage.pair("a", *FLAGS)
    floor = device_floor.Floor(stage, pair.extender.page)
    await floor.machine("pair")
    await pair.schedule(bind_timeout_seconds=3)
    pods = Pods(stage)
    await pods.fill()
    await pods.runs()
    held = stopping(pair, "after", evicted, 1)
    try:
        async with stage.priority(1000) as important, supervise.Supervisor("kubelet") as kubelet:
            kubelet.start("kubelet", pods.reap)
            await exclusive(stage, "high", 4, FULL, priorityClassName=important)
            await killed(pair, *held)
            budget = await guarded(stage, 8)
            await exclusive(stage, "thief", 2, FULL)
            await pair.extender.start()
            await pair.extender.ready()
            await stage.told("high", "PreemptionFailed", "may not be evicted now")
            await stage.refused("thief", "not enough cpus", timeout=PATIENCE)
            assert len(pods.left) == 1, pods.left
            await stage.api.delete(budget)
            await stage.bound("high", PATIENCE)
            assert len(pods.left) == 2, pods.left
            await floor.agree()
    finally:
        await floor.remove()
