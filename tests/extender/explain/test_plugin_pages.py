"""Pages of plug-ins: arguments with their source, figures of a node, a waiting pod, refusals."""

import json

import aiohttp
import pytest
from aiohttp import web

from api.kubernetes import core
from extender import settings
from extender.explain import plugin_pages, recent_refusals
from extender.informers.configuration import plugin_configuration, plugin_reload
from process.runtime import clock as clocks
from process.runtime import metrics

NOW = 1782907200.0
LOAD = "LoadAwareScheduling"
BUSY = "node cpu usage exceeds the load-aware threshold"
DOCUMENT = "{profiles: [{pluginConfig: [{name: %s, args: %s}]}]}"


class Silent:
    """Takes events and forgets them."""

    def event(self, *_said):
        return True


class Looked:
    """The pages over a picture with two nodes, of which one is busy, and a pod that waits."""

    def __init__(self, picture, make):
        registry = metrics.Registry()
        self.reload = plugin_reload.PluginReload(
            picture.cluster, picture.pipeline, picture.reader, picture.built, registry
        )
        self.configuration = plugin_configuration.PluginConfiguration(
            settings.PluginSettings(), Silent(), registry, self.reload.want
        )
        self.recent = recent_refusals.RecentRefusals()
        self.parts = plugin_pages.Parts(
            picture.verbs, self.configuration, self.reload, self.recent, clocks.ManualClock()
        )
        self.picture = picture
        picture.add(make.node("busy"), make.metric("busy", cpu="100", pods=("q",)))
        picture.add(make.pod("q", node="busy", requests={"cpu": "20"}))
        asked = {"Pod": make.pod("p", requests={"cpu": "1"}), "NodeNames": ["busy"]}
        picture.verbs.filter(json.dumps(asked).encode(), NOW)
        (told,) = picture.told
        self.recent.put(recent_refusals.RecentRefusal("default/p", NOW, 1, told.by_plugin))
        picture.add(make.node("idle"), make.metric("idle"))

    def page(self, name, node="", pod=""):
        found = plugin_pages.page(self.parts, name, node, pod)
        return json.loads(json.dumps(found))


@pytest.fixture
def looked(picture, make):
    return Looked(picture, make)


def test_every_plugin_is_listed_with_where_it_is_enabled(looked):
    found = {one["name"]: one for one in plugin_pages.listing(looked.parts)["plugins"]}
    assert found[LOAD] == {
        "name": LOAD,
        "built": True,
        "enabledAt": ["filter", "score", "reserve", "permit", "postFilter"],
        "weight": 1,
        "argumentsFrom": "settings",
    }
    assert found["BatchFit"]["argumentsFrom"] == ""
    assert found["ElasticQuota"] == {
        "name": "ElasticQuota",
        "built": True,
        "enabledAt": ["filter", "reserve", "permit", "postFilter"],
        "weight": 0,
        "argumentsFrom": "settings",
    }


@pytest.mark.parametrize("name", [LOAD, "LoadAware"])
def test_a_page_tells_arguments_figures_the_pod_and_refusals(looked, name):
    found = looked.page(name, "busy", "default/p")
    assert found["arguments"]["usageThresholds"] == {"cpu": 65, "memory": 95}
    figures = found["node"]["figures"]
    assert [pod["pod"] for pod in figures["pods"]] == ["default/q"]
    assert (figures["total"]["cpu"], figures["measured"]["cpu"]) == (128_000, 100_000)
    assert figures["thresholds"]["others"]["percent"] == {"cpu": 65, "memory": 95}
    assert found["pod"]["nodesRefusedHere"] == {BUSY: 1}
    assert (found["pod"]["nodes"], found["pod"]["nodesPassed"]) == (2, 1)
    assert found["pod"]["onNode"].startswith(f"LoadAware refuses it: {BUSY}: cpu: ")
    assert [one["nodesRefused"] for one in found["lastRefusals"]] == [{BUSY: 1}]


def test_batch_fit_tells_what_may_be_lent(looked):
    looked.picture.lend(30)
    figures = looked.page("BatchFit", "idle")["node"]["figures"]
    assert figures["cpu"] == {
        "lendable": 38_400,
        "lent": 0,
        "left": 38_400,
        "from": "the colocation strategy",
        "allocatable": 128_000,
        "requestedFirmly": 0,
        "percent": 30,
    }


@pytest.mark.parametrize(
    ("node", "pod", "said"),
    [
        pytest.param("nowhere", "", "cannot find node nowhere", id="node"),
        pytest.param("", "default/q", "pod default/q does not wait", id="pod"),
    ],
)
def test_what_is_not_there_is_said(looked, node, pod, said):
    found = looked.page(LOAD, node, pod)
    assert found["node" if node else "pod"]["message"].startswith(said)


def test_a_plugin_that_is_not_enabled_shows_what_it_is_told(looked):
    looked.configuration.take(_map(DOCUMENT % ("Coscheduling", "{enablePreemption: true}")))
    looked.picture.cluster.refresh()
    looked.reload.finish()
    found = looked.page("Coscheduling", "busy", "default/p")
    assert (found["built"], found["arguments"]["enablePreemption"]) == (True, True)
    assert found["argumentsFrom"] == "ConfigMap koord-scheduler-config"
    assert found["node"] == {"name": "busy"}
    assert found["pod"]["onNode"].startswith("LoadAware refuses it")


def test_arguments_that_are_about_to_hold_and_faults_are_shown(looked):
    looked.configuration.take(_map(DOCUMENT % (LOAD, "{usageThresholds: {cpu: 90}}")))
    found = looked.page(LOAD)
    assert found["arguments"]["usageThresholds"] == {"cpu": 65, "memory": 95}
    assert found["argumentsToCome"]["usageThresholds"] == {"cpu": 90}
    looked.picture.cluster.refresh()
    looked.reload.finish()
    found = looked.page(LOAD)
    assert found["arguments"]["usageThresholds"] == {"cpu": 90}
    assert not {"argumentsToCome", "refused"} & set(found)
    looked.configuration.take(_map(DOCUMENT % (LOAD, "{usageThresholds: {cpu: 190}}")))
    found = looked.page(LOAD)
    assert found["arguments"]["usageThresholds"] == {"cpu": 90}
    assert "usageThresholds.cpu: is 190" in found["refused"][0]
    assert plugin_pages.listing(looked.parts)["refused"] == found["refused"]


async def test_pages_are_served_and_an_unknown_plugin_is_named(looked):
    app = plugin_pages.routes(web.Application(), looked.parts)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        base = f"http://127.0.0.1:{runner.addresses[0][1]}/debug/plugins"
        async with aiohttp.ClientSession() as session:
            async with session.get(base) as answer:
                assert {one["name"] for one in (await answer.json())["plugins"]} >= {LOAD}
            async with session.get(f"{base}/Nonsense") as answer:
                assert answer.status == 404
                assert (await answer.json())["error"].startswith("there is no plug-in Nonsense; ")
            async with session.get(f"{base}/{LOAD}?node=busy") as answer:
                assert (await answer.json())["node"]["name"] == "busy"
    finally:
        await runner.cleanup()


def _map(text):
    return core.ConfigMap(data={"koord-scheduler-config": text})
