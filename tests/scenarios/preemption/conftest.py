"""An extender that places CPUs and devices within quotas and preempts, and its scheduler."""

import contextlib
import json

import aiohttp
import pytest_asyncio

from api import names, resources
from cli.commands import explain
from cli.dev import all_in_one
from cli.explain import stories, story_sources
from extender import app as extenders
from extender.settings import Settings
from process.runtime import clock as clocks
from tests.planes import foundation, raw
from tests.planes.devices import device_floor
from tests.scenarios.preemption import foreseen

PATIENCE = 60.0
PLUGINS = {
    "enabled": ["NodeNUMAResource", "DeviceShare", "ElasticQuota"],
    "weights": {"NodeNUMAResource": 1, "DeviceShare": 1},
}
BUDGETS = "poddisruptionbudgets"


class Arena(device_floor.Floor):
    """Nodes of one test, pods that hold what others want, and who has left for whom."""

    def __init__(self, here, page, app, more):
        super().__init__(here, page)
        self.app, (self.high_class, self.kube) = app, more
        self.held = []
        """Names of pods that may be victims."""

    # -- pods --------------------------------------------------------------------------------

    async def pod(self, name, *, cpus=0, bind="", gpu=0, team=False, kept=False, **more):
        """A pod that wants CPUs of its own, a share of a GPU in percent, quota, or all of them."""
        notes = {device_floor.SPEC: json.dumps({"requiredCPUBindPolicy": bind})} if bind else {}
        labels = {"app": "held"} | ({names.LABEL_QOS: "LSR"} if bind else {})
        labels |= {names.LABEL_QUOTA_NAME: self.here.name("team")} if team else {}
        labels |= {names.LABEL_QUOTA_PREEMPTIBLE: "false"} if kept else {}
        requests = {"cpu": str(cpus or "100m"), "memory": "1Gi"}
        requests |= {names.GPU: str(gpu)} if gpu else {}
        more.setdefault("terminationGracePeriodSeconds", 30)
        await self.here.pod(name, requests=requests, annotations=notes, labels=labels, **more)

    async def hold(self, name, **more):
        """A pod of low priority that runs, as its kubelet would say."""
        await self.pod(name, **more)
        await self.placed(name)
        self.held.append(name)
        await self.status(name, "Running")

    async def forget(self, name):
        """Remove a pod, and wait until kube-scheduler has seen that it is gone.

        It hears of pods in order. While it still counts one that is gone, it would choose that as
        the victim of its own preemption, and wait for it to leave.
        """
        await self.here.remove(name)
        later = f"after-{name}"
        await self.pod(later)
        await self.placed(later)
        await self.here.remove(later)

    async def status(self, name, phase):
        conditions = [{"type": "Ready", "status": str(phase == "Running")}]
        body = {"status": {"phase": phase, "conditions": conditions}}
        path = self.here.path("pods", name, "status")
        await self.api.patch(path, body, kind=raw.STRATEGIC_PATCH)

    async def high(self, name="high", **more):
        await self.pod(name, priorityClassName=self.high_class, **more)

    async def quota(self, cpu):
        kind = resources.ELASTIC_QUOTAS
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": self.here.name("team")},
            "spec": {"min": {"cpu": cpu}, "max": {"cpu": cpu}},
        }
        await self.api.post(self.here.path(kind.plural, group=kind.api_version), body)

    @contextlib.asynccontextmanager
    async def budget(self, least):
        """A disruption budget over all pods, which its controller has counted."""
        selector = {"matchLabels": {"app": "held"}}
        body = {"metadata": {"name": "all"}, "spec": {"minAvailable": least, "selector": selector}}
        path = self.here.path(BUDGETS, group="policy/v1")
        await self.api.post(path, body)

        async def counted():
            status = (await self.api.get(f"{path}/all")).get("status", {})
            return status.get("currentHealthy") == len(self.held)

        await raw.eventually(counted, PATIENCE)
        yield
        await self.api.delete(f"{path}/all")

    # -- who leaves --------------------------------------------------------------------------

    async def leaving(self):
        """Names of the pods that are leaving, or have left."""
        pods = (await self.api.get(self.here.path("pods")))["items"]
        staying = {
            pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]
        }
        return {name for name in self.held if name not in staying}

    async def victims(self):
        """Wait until pods are leaving; return their names."""
        return await raw.eventually(self.leaving, PATIENCE)

    async def claim(self, name="high"):
        """What the extender has noted of a preemption on the pod, empty where nothing."""
        pod = await self.api.get(self.here.path("pods", name))
        notes = pod["metadata"].get("annotations", {})
        return json.loads(notes.get(names.ANNOTATION_PREEMPTION, "{}"))

    async def attempts(self, count=2, name="high"):
        """Have the scheduler try a pod again so often."""
        for number in range(count):
            before = self.tries(name)
            await self.here.annotate(name, attempt=f"{before}-{number}")

            async def asked(before=before):
                return self.tries(name) > before

            await raw.eventually(asked, PATIENCE)

    def tries(self, name):
        """How often every node has refused a pod."""
        waiter = self.app.answers.waits.get(f"{self.here.namespace}/{name}")
        return waiter.tries if waiter is not None else 0

    async def preview(self, name="high"):
        """Whom the extender would evict, as its page says."""
        status, text = await self.page(f"/debug/explain?pod={self.here.namespace}/{name}")
        assert status == 200, text
        return json.loads(text).get("preemption", {})

    async def simulated(self, before, name="high"):
        """Whom `koord simulate pod` names for a pod in an earlier state of the cluster."""
        pod = await self.api.get(self.here.path("pods", name))
        return foreseen.victims(before, pod, PLUGINS["enabled"])

    async def explained(self, name="high"):
        """The story of a pod as `koord explain pod` prints it."""
        options = story_sources.Options(urls={story_sources.EXTENDER: self.app.health_url})
        sources = story_sources.Sources(self.kube, clocks.SystemClock(), options)
        story = await explain.pod(sources, f"{self.here.namespace}/{name}")
        return "\n".join(stories.lines(story))


@pytest_asyncio.fixture(loop_scope="session")
async def arena(request, plane, here):
    """Nodes of several shapes are created on it; the scheduler runs."""
    clock = clocks.SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        kube, access = await stack.enter_async_context(foundation.laid(plane, clock))
        hurried = {"cool_down_seconds": 0.2, "longest_cool_down_seconds": 0.5}
        settings = Settings.model_validate(
            {
                "server": all_in_one.local(),
                "health": all_in_one.local(),
                "plugins": PLUGINS,
                "freshness": {"idle_seconds": 86_400.0},
                "nudges": {"pause_seconds": 0.1},
                "preemption": hurried | {"budget_seconds": 0.5} | getattr(request, "param", {}),
            }
        )
        app = await stack.enter_async_context(
            extenders.running(settings, access=access, clock=clock)
        )

        async def ready():
            return app.health.ready

        await raw.eventually(ready, PATIENCE)
        session = await stack.enter_async_context(aiohttp.ClientSession())

        async def page(path):
            async with session.get(app.health_url + path) as answer:
                return answer.status, await answer.text()

        high = await stack.enter_async_context(here.priority(1000))
        await plane.start_scheduler(app.url, filter_timeout_seconds=30)
        stack.push_async_callback(plane.stop_scheduler)
        made = Arena(here, page, app, (high, kube))
        stack.push_async_callback(made.remove)
        yield made
