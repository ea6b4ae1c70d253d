"""Quota in the running extender: watched, charged by binds, and given on as soon as it is freed."""

import asyncio
import json

import aiohttp
import pytest

from api import names, resources
from extender import app, settings
from process.runtime import clock
from tests.extender import running_extender
from tests.extender.clusters import quota_cluster

START = quota_cluster.NOW
PLAIN = f"elasticquotas.{resources.GROUP_SIGS}"
LABELS = {names.LABEL_QUOTA_NAME: "team"}


class Running(running_extender.Extender):
    """An extender over HTTP, and the hands of a scheduler and of teams."""

    def forest(self):
        return self.app.books.cluster.view().cluster["ElasticQuota"].forest

    async def pod(self, name, **more):
        raw = self.make.pod(name, requests={"cpu": "4"}, **more)
        raw["metadata"]["labels"] |= LABELS
        self.server.put("pods", raw)
        await self.until(lambda: self.app.feeds.pods.get(f"default/{name}"))
        return raw

    async def filter(self, raw):
        return await self.call("filter", {"Pod": raw, "Nodes": None, "NodeNames": ["n1", "n2"]})

    async def bind(self, raw, node="n1"):
        meta = raw["metadata"]
        body = {"PodName": meta["name"], "PodNamespace": "default", "PodUID": meta["uid"]}
        return (await self.call("bind", body | {"Node": node}))["Error"]

    def quota(self, cpu):
        spec = {"least": {"cpu": cpu}, "most": {"cpu": cpu}}
        self.server.put(PLAIN, quota_cluster.written("team", **spec))

    async def quota_of(self, cpu):
        self.quota(cpu)
        await self.until(
            lambda: (
                self.forest().limit("team").get("cpu") is not None
                and self.forest().figures("team").cap == {"cpu": int(cpu) * 1000}
            )
        )


@pytest.fixture
async def running(api_server, make):
    for name in ("n1", "n2"):
        api_server.put("nodes", make.node(name))
        api_server.put("nodemetrics", make.metric(name, cpu="1"))
    async with running_extender.opened(Running, api_server, make, START) as found:
        yield found


async def test_filter_and_bind_hold_pods_to_their_quota(running):
    one, two, three = [await running.pod(name) for name in ("one", "two", "three")]
    assert (await running.filter(one))["NodeNames"] == ["n1", "n2"], "no quota bounds anybody"
    await running.quota_of("8")
    answers = await asyncio.gather(*(running.bind(raw) for raw in (one, two, three)))
    assert sorted(bool(text) for text in answers) == [False, False, True]
    refused = next(text for text in answers if text)
    assert refused.startswith("Insufficient quotas, quotaName: team, runtime: cpu:8, used: cpu:8")
    late = await running.pod("late")
    found = await running.filter(late)
    assert found["FailedNodes"] == {}, "nobody is evicted for quota"
    unresolvable = found["FailedAndUnresolvableNodes"]
    assert set(unresolvable) == {"n1", "n2"}
    assert len(set(unresolvable.values())) == 1
    for number in range(3):
        await running.quota_of(str(9 + number))
        await running.filter(late)
    async with running.session.get(f"{running.app.health_url}/metrics") as answer:
        series = (await answer.text()).split("\n")
    counted = [line for line in series if line.startswith("koord_extender_refusals_total{")]
    assert len([line for line in counted if "ElasticQuota" in line]) == 1, "without figures"


async def test_a_pod_is_woken_when_the_quota_is_freed(running):
    await running.quota_of("4")
    held, waits = await running.pod("held"), await running.pod("waits")
    assert await running.bind(held) == ""
    assert (await running.filter(waits))["NodeNames"] == []
    await running.time.advance(3)
    assert running.nudged("waits") == ""
    running.server.delete("pods", "default/held")
    await running.until(lambda: running.nudged("waits"))
    assert (await running.filter(waits))["NodeNames"] == ["n1", "n2"]
    assert await running.bind(waits) == ""


async def test_arguments_take_effect_while_it_runs(running):
    await running.quota_of("4")
    other = quota_cluster.written("other", least={"cpu": "255"}, most={"cpu": "256"})
    running.server.put(PLAIN, other)
    await running.until(lambda: "other" in running.forest().names())
    greedy = running.make.pod("greedy", requests={"cpu": "255"})
    greedy["metadata"]["labels"][names.LABEL_QUOTA_NAME] = "other"
    running.server.put("pods", greedy)
    waits = await running.pod("waits")
    await running.until(lambda: running.forest().limit("team")["cpu"] < 4000)
    assert (await running.filter(waits))["NodeNames"] == []
    text = json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "schedulerName": "koord-scheduler",
                    "pluginConfig": [
                        {"name": "ElasticQuota", "args": {"enableRuntimeQuota": False}}
                    ],
                }
            ],
        }
    )
    metadata = {"name": names.CONFIG_MAP_SCHEDULER, "namespace": names.NAMESPACE, "uid": "c"}
    running.server.put(
        "configmaps", {"metadata": metadata, "data": {"koord-scheduler-config": text}}
    )
    await running.until(lambda: not running.forest().rules.runtime)
    assert (await running.filter(waits))["NodeNames"] == ["n1", "n2"]


async def test_a_group_that_is_not_installed_is_told_and_holds_up_nobody(api_server, make):
    del api_server.objects[f"elasticquotas.{resources.GROUP_SHORT}"]
    anywhere = {"port": 0, "linger_seconds": 0}
    made = settings.Settings(server=anywhere, health=anywhere)
    time = clock.ManualClock(now=START)
    async with (
        api_server.serving() as access,
        aiohttp.ClientSession() as session,
        app.running(made, access=access, clock=time) as extender,
    ):
        running = Running(extender, session, api_server, time, make)
        await running.until(lambda: extender.health.ready)
        (told,) = [text for text in extender.health.warnings().values() if "elasticquotas" in text]
        assert told == f"elasticquotas.{resources.GROUP_SHORT} is not installed"
        await running.quota_of("8")


async def test_a_restart_counts_the_same(running, api_server, make):
    await running.quota_of("8")
    held, _ = await running.pod("held"), await running.pod("waits")
    assert await running.bind(held) == ""
    await running.until(lambda: not running.app.books.assumptions)
    before = running.app.books.cluster.view().cluster["ElasticQuota"]
    anywhere = {"port": 0, "linger_seconds": 0}
    made = settings.Settings(server=anywhere, health=anywhere)
    async with (
        api_server.serving() as access,
        app.running(made, access=access, clock=running.time) as again,
    ):
        await running.until(lambda: again.health.ready)
        assert again.books.cluster.view().cluster["ElasticQuota"] == before
