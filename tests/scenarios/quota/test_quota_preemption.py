"""Inside a full quota a pod of higher priority takes the place of exactly one that is lower."""

import contextlib
import json

import pytest_asyncio

from api import names, resources
from extender import app
from extender.settings import Settings
from kube.client import access as accesses
from process.runtime import clock as clocks
from tests.planes import definitions, raw

KIND = resources.ELASTIC_QUOTAS
FULL = "Insufficient quotas"


@pytest_asyncio.fixture(loop_scope="session")
async def quotas(here, watched):
    """The definitions of ElasticQuota are there before an extender starts."""
    async with definitions.defined(here.api, *resources.QUOTA_RESOURCES):
        yield


@contextlib.asynccontextmanager
async def extending(here):
    plane, anywhere = here.plane, {"port": 0, "linger_seconds": 0, "announce_seconds": 0}
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    chosen = Settings(server=anywhere, health=anywhere)
    async with app.running(chosen, access=access, clock=clocks.SystemClock()) as made:

        async def ready():
            return made.health.ready

        await raw.eventually(ready, raw.PATIENCE)
        await plane.start_scheduler(made.url, filter_timeout_seconds=30)
        try:
            yield made
        finally:
            await plane.stop_scheduler()


class Team:
    """One quota and its pods."""

    def __init__(self, here):
        self.here, self.name = here, here.name("team")

    async def quota(self, cpu):
        body = {
            "apiVersion": KIND.api_version,
            "kind": KIND.kind,
            "metadata": {"name": self.name},
            "spec": {"min": {"cpu": cpu}, "max": {"cpu": cpu}},
        }
        await self.here.api.post(self.here.path(KIND.plural, group=KIND.api_version), body)

    async def pod(self, name, **more):
        labels = {names.LABEL_QUOTA_NAME: self.name} | more.pop("labels", {})
        await self.here.pod(
            name, labels=labels, requests={"cpu": "1"}, terminationGracePeriodSeconds=30, **more
        )

    async def three(self):
        await self.here.node("n", cpu="8")
        await self.quota("3")
        for number in range(3):
            await self.pod(f"low-{number}")
            await self.here.bound(f"low-{number}")

    async def leaving(self):
        """The pods that are leaving, or have left, by name."""
        found = {}
        for number in range(3):
            path = self.here.path("pods", f"low-{number}")
            answer = await self.here.api.call("GET", path)
            pod = answer.body if answer.status == 200 else {"metadata": {"deletionTimestamp": "?"}}
            if "deletionTimestamp" in pod["metadata"]:
                found[f"low-{number}"] = pod
        return found


async def test_one_pod_leaves_for_the_high_one_and_its_replacement_waits(here, quotas):
    team = Team(here)
    async with here.priority(1000) as important, extending(here) as made:
        await team.three()
        await team.pod("high", priorityClassName=important)
        (name, victim), *others = (await raw.eventually(team.leaving)).items()
        assert others == []
        reasons = {one["type"]: one.get("reason") for one in victim["status"]["conditions"]}
        assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"
        high = await here.api.get(here.path("pods", "high"))
        record = json.loads(high["metadata"]["annotations"][names.ANNOTATION_PREEMPTION])
        assert record["victims"] == [victim["metadata"]["uid"]]
        # What its controller makes instead is refused, now and when the room is there.
        await team.pod("again")
        await here.refused("again", FULL)
        await here.remove(name)
        await here.bound("high")
        await here.refused("again", FULL)
        assert set(await team.leaving()) == {name}, "nobody else has left"
        await here.told(
            "high", "Preempting", f"evicts 1 of lower priority: {here.namespace}/{name}"
        )
        await here.told(name, "Preempted", f"evicted for {here.namespace}/high")
        assert (
            made.registry.value("koord_extender_preemption_victims_total", {"result": "evicted"})
            == 1
        )


async def test_pods_marked_as_not_preemptible_stay(here, quotas):
    team = Team(here)
    kept = {names.LABEL_QUOTA_PREEMPTIBLE: "false"}
    async with here.priority(1000) as important, extending(here):
        await here.node("n", cpu="8")
        await team.quota("3")
        for number in range(3):
            await team.pod(f"low-{number}", labels=kept if number != 1 else {})
            await here.bound(f"low-{number}")
        await team.pod("high", priorityClassName=important)
        found = await raw.eventually(team.leaving)
        assert set(found) == {"low-1"}
        await here.remove("low-1")
        await here.bound("high")
        await team.pod("second", priorityClassName=important)
        await here.refused("second", FULL)
        assert set(await team.leaving()) == {"low-1"}


async def test_a_pod_that_its_quota_refused_starts_when_another_one_is_gone(here, quotas):
    """Nobody else tells the scheduler: without the wake-up it would wait for minutes."""
    team = Team(here)
    async with extending(here) as made:
        await team.three()
        await team.pod("next")
        await here.refused("next", FULL)
        assert await team.leaving() == {}, "no pod is preempted by a pod of equal priority"
        await here.remove("low-1")
        await here.bound("next")
        value = made.books.cluster.view().cluster["ElasticQuota"]
        assert value.forest.figures(team.name).used == {"cpu": 3000}
